// The options of programs that read texts: which files, and what in them is a document.
#pragma once
#include <string>
#include <vector>

#include "apps/terminal/cli.h"
#include "data/shards/document_reader.h"

namespace ricci::apps {

struct TextOptions {
  std::vector<std::string> paths;
  std::string format, encoding = name_of(Encoding::utf8);  // if the format is empty, the names of the files decide
  DocumentOptions documents;
};
void add_text_options(CLI::App& app, TextOptions& options, bool reads_messages);

// The files, and what the options make of them. Errors: options that do not belong together; TextSource's.
TextSource open_texts(TextOptions& options);

}  // namespace ricci::apps
