#include "apps/interop/imported_run.h"

#include <filesystem>

#include "apps/run/folder/run_folder.h"
#include "apps/terminal/progress.h"
#include "core/error.h"

namespace ricci::apps {

std::string write_imported_run(const std::string& path, Model& model, const Tokenizer* tokenizer, const std::string& origin) {
  std::string folder = path;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  TrainConfig config;
  config.name = std::filesystem::path(folder).filename();
  config.model = model.config();
  config.data.clear();
  if (tokenizer) config.tokenizer = folder + "/tokenizer.json";
  check(config);
  resolve(config);
  RunFolder run = RunFolder::to_train({folder, config});
  if (!run.checkpoints().steps().empty()) fail("{}: holds a run already", {folder});
  run.begin(config, tokenizer, 0);
  run.save_model(model, 0);
  return format_message("{}: {} parameters from {}, {}, vocabulary {}, context {}",
      {folder, with_commas(model.parameter_count()), origin, tokenizer ? tokenizer->name() + " tokenizer" : "no tokenizer",
          config.model.vocab, config.model.ctx});
}

}  // namespace ricci::apps
