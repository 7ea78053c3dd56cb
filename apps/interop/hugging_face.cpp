#include "apps/interop/hugging_face.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/interop/gpt2.h"
#include "apps/interop/imported_run.h"
#include "apps/run/config/config.h"
#include "apps/run/folder/run_folder.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/json/value.h"
#include "data/tokenizers/kinds.h"

namespace ricci::apps {
namespace {

// Files of which each tells of a tokenizer; those of a pair need one another.
constexpr const char* kTokenizerFiles[] = {"tokenizer.json", "vocab.json", "merges.txt"};
// How the end of a text is written in vocabularies.
constexpr const char* kEndOfText[] = {"<|endoftext|>", "<eos>"};

// Null where the folder has none.
std::shared_ptr<const Tokenizer> read_tokenizer(const std::string& folder) {
  for (const char* name : kTokenizerFiles) {
    const std::string path = folder + "/" + name;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    try {
      return open_tokenizer(path);
    } catch (const Error& error) {
      fail("{}; --without-tokenizer leaves it out", {error.what()});
    }
  }
  return nullptr;
}

int64_t end_of_text(const Tokenizer* tokenizer) {
  for (const char* piece : kEndOfText)
    if (const int64_t id = tokenizer ? tokenizer->find(piece) : -1; id >= 0) return id;
  return -1;
}

// tokenizer.json as transformers reads it. Empty where it has none for this tokenizer: none for characters, bytes, or an <eos> per line.
std::string their_tokenizer(const Tokenizer* tokenizer) {
  const std::string json = tokenizer ? tokenizer->to_json() : "";
  return json.empty() || parse_json(json, "tokenizer")["model"].is_null() ? "" : json;
}

void write_tokenizer(const Folder& place, const std::string& json, int64_t context) {
  write_file_atomically({place, "tokenizer.json"}, json);
  const nlohmann::ordered_json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"model_max_length", context}};
  write_file_atomically({place, "tokenizer_config.json"}, config.dump(2) + "\n");
}

}  // namespace

std::string import_hugging_face(const std::string& folder, const std::string& run, const ImportOptions& options) {
  const ModelConfig config = config_of_gpt2(JsonFile(folder + "/config.json"), options.dropout);
  const WeightFiles files = WeightFiles::in_folder(folder);
  const std::shared_ptr<const Tokenizer> tokenizer = options.without_tokenizer ? nullptr : read_tokenizer(folder);
  if (tokenizer && tokenizer->vocab_size() != config.vocab)
    fail("{}: its tokenizer has {} tokens, but its config.json has vocab_size: {}; --without-tokenizer leaves it out",
        {folder, tokenizer->vocab_size(), config.vocab});
  Model model(config);
  load_gpt2(model, files);
  return write_imported_run(run, model, tokenizer.get(), folder);
}

std::string export_hugging_face(const std::string& path, const std::string& which, const std::string& folder) {
  const RunFolder run = RunFolder::open(path, RunFolder::Vocabulary::optional);
  Model model = run.load_model(Device::cpu, which);
  const std::string config = gpt2_config_json(model.config(), end_of_text(run.tokenizer().get())),
                    tokenizer = their_tokenizer(run.tokenizer().get());
  make_folders(folder);
  const Folder place(folder);
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
    if (OpenFile::find({place, name})) fail("{}: holds a model already ({})", {folder, name});
  save_safetensors({place, "model.safetensors"}, gpt2_weights(model), {{"format", "pt"}});
  if (!tokenizer.empty()) write_tokenizer(place, tokenizer, model.config().ctx);
  write_file_atomically({place, "config.json"}, config);
  return format_message("{}: {} parameters from {}, GPT-2, {}, vocabulary {}, context {}",
      {folder, with_commas(model.parameter_count()), path, tokenizer.empty() ? "no tokenizer" : run.tokenizer()->name() + " tokenizer",
          model.config().vocab, model.config().ctx});
}

}  // namespace ricci::apps
