#include "apps/interop/hugging_face.h"

#include <filesystem>
#include <memory>

#include "apps/interop/interop.h"
#include "apps/run/run.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/json.h"

namespace ricci::apps {
namespace {

constexpr const char* kWeights = "model.safetensors";

// Loads the weights of the folder. The first name of the map is the embedding table: either all names in the files have the prefix or none
// has. A tied output map is ignored if a file has it again, as transformers does.
void load(Model& model, const WeightFiles& files) {
  WeightMap map = weight_map(model.config());
  if (!files.contains(map.prefix + map.names[0].hf)) map.prefix.clear();
  std::vector<const char*> ignored(map.ignored.begin(), map.ignored.end());
  if (model.config().output.tie) ignored.push_back("lm_head.weight");
  map.ignored = ignored;
  load_mapped(model, map, files);
}

// Error: the folder holds weights or a vocabulary, or a different text under one of these names. An interrupted export can be repeated.
void write_folder(const std::string& folder, const std::vector<std::pair<const char*, std::string>>& texts, const NamedTensors& tensors) {
  const auto path = [&](const char* name) { return folder + "/" + name; };
  const auto refuse = [&](const char* name) { fail("{}: already holds a model ({})", {folder, name}); };
  for (const char* name : {kWeights, "model.safetensors.index.json", "vocab.json", "merges.txt"})
    if (is_there(path(name))) refuse(name);
  for (const auto& [name, text] : texts)
    if (const auto found = find_text(path(name)); found && *found != text) refuse(name);
  make_folders(folder);
  for (const auto& [name, text] : texts)
    if (!text.empty()) write_atomically(path(name), text);
  save_safetensors(path(kWeights), tensors, {{"format", "pt"}});
}

}  // namespace

std::string write_imported_run(
    const std::string& path, Model& model, const Tokenizer* tokenizer, const std::string& origin, const HfChatTemplate& chat) {
  std::string folder = path;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  TrainConfig config;
  config.name = std::filesystem::path(folder).filename();
  config.model = model.config();
  BlockConfig block = config.model.block;
  block.ff.reset();
  if (block.feed_forward(config.model.d) == config.model.block.feed_forward(config.model.d))
    config.model.block = block;  // the default width follows d
  config.data.clear();
  config.chat = chat.named;
  // Models with rotary positions allow contexts that are too long to train with.
  if (model.config().embedding.positions == PositionKind::rope) config.context = std::min<int64_t>(model.config().ctx, 2048);
  if (tokenizer) config.tokenizer = folder + "/tokenizer.json";
  check(config);
  give_differing(config);
  RunFolder run = RunFolder::to_train({folder, config});
  if (!run.checkpoints().steps().empty()) fail("{}: already holds a run", {folder});
  run.begin({.tokenizer = tokenizer, .chat = chat.kept});
  run.save_model(model, 0);
  return format_message("{}: {} parameters from {}\n{}, vocabulary {}, context {}{}",
      {folder, with_commas(model.parameter_count()), origin, tokenizer ? tokenizer->name() + " tokenizer" : "no tokenizer",
          config.model.vocab, config.model.ctx, chat.note});
}

std::string import_hugging_face(const std::string& folder, const std::string& run, std::optional<double> dropout, bool without_tokenizer) {
  if (is_file(folder)) fail("{}: is a file; import reads folders of Hugging Face", {folder});
  if (is_there(folder + "/config.yaml")) fail("{}: is already a run; import reads folders of Hugging Face", {folder});
  const std::string path = folder + "/config.json";
  const Json json = read_json(path);
  const ModelConfig config = read_hf_config(json, path, dropout.value_or(-1));
  const WeightFiles files = open_weights(folder);
  const std::shared_ptr<const Tokenizer> tokenizer = without_tokenizer ? nullptr : read_hf_tokenizer(folder, json);
  if (tokenizer && tokenizer->vocab_size() > config.vocab)
    fail("{}: its tokenizer has {} tokens, but its config.json has vocab_size: {}; --without-tokenizer leaves it out",
        {folder, tokenizer->vocab_size(), config.vocab});
  const HfChatTemplate chat = without_tokenizer ? HfChatTemplate() : read_hf_chat_template(folder, tokenizer);
  Model model(config);
  load(model, files);
  return write_imported_run(run, model, tokenizer.get(), folder, chat);
}

std::string export_hugging_face(const std::string& path, const std::string& which, const std::string& folder) {
  const RunFolder run = RunFolder::open(path, RunFolder::Vocabulary::optional);
  Model model = run.load_model(Device::cpu, which);
  const ModelConfig& c = model.config();
  const Marks marks = marks_to_export(run);
  const std::string config = hf_config_json(c, marks), tokenizer = hf_tokenizer_json(run.tokenizer().get());
  const bool has_tokenizer = !tokenizer.empty();
  Json generation;  // as generate() of transformers reads it: every id of the list ends a text
  add_marks(generation, marks);
  const ImportedTemplate chat = has_tokenizer ? template_to_export(run) : ImportedTemplate();
  write_folder(folder,
      {{"tokenizer.json", tokenizer}, {kTemplateFile, chat.file},
          {"tokenizer_config.json", has_tokenizer ? hf_tokenizer_config_json(*run.tokenizer(), marks, c.ctx, chat.member) : ""},
          {"generation_config.json", marks.ends.empty() ? "" : to_text(generation, 2) + "\n"}, {"config.json", config}},
      export_weights(model));
  const Tokenizer* const ours = run.tokenizer().get();
  std::string lacking;
  if (ours && !has_tokenizer)
    lacking =
        "\ntransformers has no tokenizer " + (ours->eos() == Eos::line ? "that ends lines with a piece" : "of the kind " + ours->name());
  return format_message("{}: {} parameters from {}\n{}, {}, vocabulary {}, context {}{}",
      {folder, with_commas(model.parameter_count()), path, weight_map(c).name, has_tokenizer ? ours->name() + " tokenizer" : "no tokenizer",
          c.vocab, c.ctx, lacking});
}

}  // namespace ricci::apps
