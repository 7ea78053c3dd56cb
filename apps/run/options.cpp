#include "apps/run/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "core/choice.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "cuda/device/device.h"

namespace ricci::apps {
namespace {

// A folder name can contain an equals sign, such as runs/lr=0.1. No key contains a slash. ~KEY removes a key.
bool is_override(const std::string& word) {
  const size_t equals = word.find('='), slash = word.find('/');
  if (equals == word.npos) return word.starts_with('~') && slash == word.npos;
  return slash > equals;
}

// Suggests the key that a user meant by an option such as --lr.
std::string hint_for(const CLI::App& app, const std::string& word) {
  if (!word.starts_with("--")) return "";
  if (const std::string nearest = nearest_option(app, word); !nearest.empty()) return nearest;
  const std::string key = word.substr(2);
  return "; keys of a run file are written as " + key + (key.starts_with('~') ? "" : "=VALUE");
}

}  // namespace

// This option exists only for --help and accepts no word. CLI11 would lose the order of words; app.remaining() keeps the order.
void add_run_arguments(CLI::App& app, RunOptions& options, const char* help, bool several) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("run", *words, help)
      ->type_name(several ? "[FILE ...] [KEY=VALUE ...]" : "[FILE] [KEY=VALUE ...]")
      ->check([words](const std::string&) { return "is read by app.remaining()"; });
  app.validate_positionals();
  app.allow_extras();
  app.parse_complete_callback([&app, &options, several] {
    for (const std::string& word : app.remaining()) {
      if (word == "--") continue;
      const bool has_dash = word.size() > 1 && word[0] == '-';
      if (has_dash && !(word.starts_with("--") && word.find('=') != word.npos))
        throw CLI::ExtrasError(app.get_name(), {word + hint_for(app, word)});
      if (word.empty()) throw CLI::ValidationError("a run file has an empty name");
      if (word[0] == '=') throw CLI::ValidationError(one_line(word) + ": remove the blanks around the equals sign, as in data=my.txt");
      if (has_dash || is_override(word)) options.overrides.push_back(word.substr(has_dash ? 2 : 0));
      else if (options.file().empty()) options.files[0] = word;
      else if (several) options.files.push_back(word);
      else throw CLI::ValidationError("expected one run file, got " + options.file() + " and " + word);
    }
  });
}

void add_run_options(CLI::App& app, RunOptions& options) {
  add_run_arguments(app, options);
  const auto print = [](const std::string& group) {
    std::fputs(describe(TrainConfig(), group).c_str(), stdout);
    throw CLI::Success();
  };
  app.add_option_function<std::string>(
         "--help-config", print, "Print the keys of a run file with their defaults, as YAML, and exit: all, or a group such as optimizer")
      ->expected(0, 1)
      ->type_name("[GROUP]");
}

void add_text_options(CLI::App& app, TextOptions& options, bool of_run) {
  const std::string of_files = list_of_formats(&FormatTraits::has_suffix, " or ") + " if the files are named so, else ";
  app.add_option("--format", options.format,
      "Format of the files: " + list_of<DocumentFormat>() + "; by default " + of_files + (of_run ? "the run's format" : "text"));
  app.add_option("--encoding", options.encoding,
      "Encoding of the files: " + list_of<Encoding>() + "; by default " + (of_run ? "the run's encoding" : name_of(Encoding::utf8)));
  app.add_option(
      "--text-field", options.documents.text_field, "Field with the text of a document; " + describe_formats(&FormatTraits::fields));
  app.add_option("--label-field", options.documents.label_field, "Field with the label of a document, if the run uses labels");
  if (of_run) return;
  app.add_option("--documents", options.documents.documents,
         "Documents in a text: each file, line or paragraph (blank_line), or the text between two occurrences of any other separator")
      ->capture_default_str();
}

Encoding encoding_of(const TextOptions& options) {
  return options.encoding.empty() ? Encoding::utf8 : choice_of<Encoding>("--encoding", options.encoding);
}

Documents open_documents(const TextOptions& options) {
  DocumentOptions documents = options.documents;
  const bool is_given = !options.format.empty();
  const NamedFormat named = is_given ? NamedFormat{choice_of<DocumentFormat>("--format", options.format)} : format_of_names(options.paths);
  documents.format = named.format;
  documents.chosen_by = named.file;
  check(documents);
  const Documents opened{.files = TextSource(options.paths).read_as(encoding_of(options)), .options = documents};
  if (const std::string note = note_on(opened, is_given); !note.empty()) std::fprintf(stderr, "warning: %s\n", note.c_str());
  return opened;
}

TrainConfig with_text(const TrainConfig& config, const TextOptions& options) {
  const std::string &text_field = options.documents.text_field, &label_field = options.documents.label_field;
  const bool learned_shards = is_classifier(config) && config.label_field.empty();
  const NamedFormat named = format_of_names(options.paths);
  TrainConfig text = config;
  if (!options.paths.empty()) text.validation = options.paths;
  if (!options.encoding.empty()) text.encoding = choice_of<Encoding>("--encoding", options.encoding);
  if (!options.format.empty()) {
    text.format = choice_of<DocumentFormat>("--format", options.format);
    text.given.insert("format");
  } else if (!named.file.empty() && !has_mask(config) && !(learned_shards && label_field.empty())) {
    text.format = named.format;
  }
  if (has_mask(text) != has_mask(config))
    fail("--format: {}, but the run was trained with {}", {name_of(text.format), name_of(config.format)});
  const FormatTraits &before = traits_of(config.format), &now = traits_of(text.format);
  if (!now.has_fields() || now.check_field != before.check_field) {  // a column number is not a member name
    text.text_field.clear();
    text.label_field.clear();
  }
  if (!text_field.empty()) text.text_field = text_field;
  if (!label_field.empty() && is_classifier(config)) text.label_field = label_field;
  return text;
}

void add_threads_option(CLI::App& app) {
  const auto use = [](int threads) {
    if (threads) set_thread_count(threads);
  };
  app.add_option_function<int>("--threads", use, "CPU threads (0: all)")->check(thread_number);
}

void add_compute_options(CLI::App& app, ComputeOptions& options) {
  app.add_option("--precision,--dtype", options.dtype, std::string("Type of weights and activations: ") + kFloatingDtypes)
      ->capture_default_str();
  app.add_option("--device", options.device, "Device: " + list_of<Device>())->capture_default_str();
}

void add_checkpoint_note(CLI::App& app) {
  const auto refuse = [](const std::string&) {
    throw CLI::ValidationError("no option --checkpoint; NAME@best or NAME@250 names the weights");
  };
  app.add_option_function<std::string>("--checkpoint", refuse)->group("");
}

void add_model_options(CLI::App& app, ModelOptions& options, const std::string& context_help) {
  app.add_option("--context", options.context, context_help + ", up to model.ctx; by default as in training")->check(at_least_one);
  add_checkpoint_note(app);
  add_compute_options(app, options.compute);
  add_threads_option(app);
}

OpenModel open_model(const std::string& path, const ModelOptions& options) {
  const Device device = parse_device(options.compute.device.c_str());
  const Dtype dtype = parse_dtype(options.compute.dtype.c_str());
  RunFolder run = RunFolder::open(path);
  const int64_t context = run.context(options.context);
  Model model = run.load_model(device, dtype);
  return {device, std::move(run), std::move(model), context};
}

}  // namespace ricci::apps
