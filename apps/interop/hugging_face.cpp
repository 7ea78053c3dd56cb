#include "apps/interop/hugging_face.h"

#include <filesystem>
#include <memory>

#include "apps/config/config.h"
#include "apps/interop/gpt2.h"
#include "apps/interop/imported_run.h"
#include "apps/runs/run_folder.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci::apps {
namespace {

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::shared_ptr<const Tokenizer> read_tokenizer(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json";
  if (!exists(path)) return nullptr;
  try {
    return tokenizer_from_json(read_text(path, kMostTokenizer));
  } catch (const Error& error) {
    fail("{}: {}; --without-tokenizer leaves it out", {path, error.what()});
  }
}

}  // namespace

std::string import_hugging_face(const std::string& folder, const std::string& run, const ImportOptions& options) {
  const ModelConfig config = config_of_gpt2(JsonFile(folder + "/config.json"), options.dropout);
  const WeightFiles files = WeightFiles::in_folder(folder);
  const std::shared_ptr<const Tokenizer> tokenizer = options.without_tokenizer ? nullptr : read_tokenizer(folder);
  if (tokenizer && tokenizer->vocab_size() != config.vocab)
    fail("{}: its tokenizer.json has {} tokens, but its config.json has vocab_size: {}; --without-tokenizer leaves it out",
         {folder, tokenizer->vocab_size(), config.vocab});
  Model model(config);
  load_gpt2(model, files);
  return write_imported_run(run, model, tokenizer.get(), folder);
}

std::string export_hugging_face(const std::string& path, const std::string& which, const std::string& folder) {
  const RunFolder run = RunFolder::open(path, RunFolder::Vocabulary::optional);
  Model model = run.load_model(Device::cpu, which);
  const std::string config = gpt2_config_json(model.config(), -1);
  make_folders(folder);
  const Folder place(folder);
  for (const char* name : {"config.json", "model.safetensors"})
    if (OpenFile::find({place, name})) fail("{}: holds a model already ({})", {folder, name});
  save_safetensors({place, "model.safetensors"}, gpt2_weights(model), {{"format", "pt"}});
  write_file_atomically({place, "config.json"}, config);
  return format_message("{}: {} parameters from {}, GPT-2, vocabulary {}, context {}",
                        {folder, with_commas(model.parameter_count()), path, model.config().vocab, model.config().ctx});
}

}  // namespace ricci::apps
