#include "apps/run/text_options.h"

#include <CLI/CLI.hpp>

namespace ricci::apps {

void add_text_options(CLI::App& app, TextOptions& options, bool reads_messages) {
  app.add_option("--format", options.format,
      "Format of the files: text, jsonl, tsv" + std::string(reads_messages ? ", messages" : "") +
          "; if not given, jsonl or tsv where they are named so, else text");
  app.add_option("--encoding", options.encoding, "Encoding of the files: " + list_of<Encoding>())->capture_default_str();
  app.add_option("--documents", options.documents.documents,
         "Documents in text: each file, line or paragraph (blank_line), or the text between two of any other separator")
      ->capture_default_str();
  app.add_option("--text-field", options.documents.text_field,
      "Name of the field with the text (jsonl; \"text\" if not given), or number of its column (tsv; the last if not given)");
}

TextSource open_texts(TextOptions& options) {
  options.documents.format =
      options.format.empty() ? format_of_names(options.paths) : choice_of<DocumentFormat>("--format", options.format);
  check(options.documents);
  const TextSource files = options.paths.size() == 1 ? TextSource(options.paths[0]) : TextSource::of_paths(options.paths);
  return files.read_as(choice_of<Encoding>("--encoding", options.encoding));
}

}  // namespace ricci::apps
