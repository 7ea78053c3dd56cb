#include "apps/interop/hugging_face.h"

#include <cstring>
#include <filesystem>
#include <memory>

#include "apps/interop/interop.h"
#include "apps/run/run_folder.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/json.h"

namespace ricci::apps {
namespace {

constexpr const char *kWeights = "model.safetensors", *kIndex = "model.safetensors.index.json", *kHead = "lm_head.weight";

// Files with weights in other forms, and how to convert them. An adapter folder can also contain the other files.
constexpr const char* kSave = "AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW) of transformers writes it";
constexpr std::pair<const char*, const char*> kOtherWeights[] = {
    {"adapter_config.json", "a PEFT adapter is not a full model: merge_and_unload() and save_pretrained(NEW) write one"},
    {"pytorch_model.bin", kSave}, {"pytorch_model.bin.index.json", kSave},
    {"consolidated.00.pth", "this is Meta's own form; the hub also has the transformers form"}};

// Parts that wrappers add to weight names, and the model to save instead.
constexpr std::pair<const char*, const char*> kWrappers[] = {{"_orig_mod.", "torch.compile; save model._orig_mod"},
    {"module.", "DistributedDataParallel; save model.module"}, {"base_model.model.", "PEFT; save model.merge_and_unload()"}};

// Throws Error if the folder has no readable weights. The message describes how to get them.
void check_folder(const std::string& folder) {
  if (is_file(folder)) fail("{}: is a file, expected a Hugging Face folder", {folder});
  if (!is_there(folder)) fail("{0}: no such folder; to get a model from the hub, run hf download {0} --local-dir FOLDER", {folder});
  if (is_there(folder + "/config.yaml")) fail("{}: is already a run, expected a Hugging Face folder", {folder});
  if (is_there(folder + "/" + kWeights) || is_there(folder + "/" + kIndex)) return;
  for (const auto& [name, way] : kOtherWeights)
    if (is_there(folder + "/" + name)) fail("{}: has {}, but no {}; {}", {folder, name, kWeights, way});
}

void check_names(const WeightFiles& files) {
  for (const auto& [name, file] : files.files)
    for (const auto& [part, wrapper] : kWrappers)
      if (name.find(part) != name.npos)
        fail("{}: the name of tensor {} contains the {} of {}", {files.folder, one_line(name), part, wrapper});
}

// True if all names but lm_head.weight have the prefix. A file has the prefix on all of these names or on none.
bool has_prefix(const WeightFiles& files, const WeightMap& map) {
  const auto found = files.files.lower_bound(map.prefix);
  return found != files.files.end() && found->first.starts_with(map.prefix);
}

// True if the files contain an output map that differs from the embedding table. As in transformers, such a model is not tied.
bool has_own_head(const WeightFiles& files, const WeightMap& map) {
  const std::string table = (has_prefix(files, map) ? map.prefix : "") + map.names[0].hf;
  if (!files.contains(table) || !files.contains(kHead)) return false;
  const Tensor a = files.files.at(table)->load_f32(table), b = files.files.at(kHead)->load_f32(kHead);
  return !(a.shape() == b.shape()) || std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) != 0;
}

// Fills the model from the files. The map's first entry is the embedding table. In the files, a tied table has its own name, the head's
// name or both.
void load(Model& model, const WeightFiles& files) {
  WeightMap map = weight_map(model.config());
  if (!has_prefix(files, map)) map.prefix.clear();
  std::vector<MappedName> names(map.names.begin(), map.names.end());
  std::vector<const char*> ignored(map.ignored.begin(), map.ignored.end());
  if (model.config().output.tie) {
    const bool has_table = files.contains(map.prefix + names[0].hf);
    if (has_table || !files.contains(kHead)) ignored.push_back(kHead);
    else names[0].hf = kHead;
  }
  map.names = names;
  map.ignored = ignored;
  load_mapped(model, map, files);
}

// Writes the files of an export. An interrupted export can be repeated. Error: the folder contains weights or a vocabulary, or a different
// text under one of these names.
void write_folder(const std::string& folder, const std::vector<std::pair<const char*, std::string>>& texts, const NamedTensors& tensors) {
  const auto path = [&](const char* name) { return folder + "/" + name; };
  const auto refuse = [&](const char* name) { fail("{}: already contains a model ({})", {folder, name}); };
  for (const char* name : {kWeights, kIndex, "vocab.json", "merges.txt"})
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
  const std::string folder = new_run(path);
  TrainConfig config;
  config.name = std::filesystem::path(folder).filename();
  config.model = model.config();
  BlockConfig block = config.model.block;
  block.ff.reset();
  if (block.feed_forward(config.model.d) == config.model.block.feed_forward(config.model.d))
    config.model.block = block;  // the default width depends on d
  config.data.clear();
  config.chat = chat.named;
  // Models with rotary positions allow contexts that are too long for training.
  if (model.config().embedding.positions == PositionKind::rope) config.context = std::min<int64_t>(model.config().ctx, 2048);
  if (tokenizer) config.tokenizer = folder + "/tokenizer.json";
  check(config);
  give_differing(config);
  RunFolder run = RunFolder::to_train({folder, config});
  if (!run.checkpoints().steps().empty()) fail("{}: already contains a run", {folder});
  run.begin({.tokenizer = tokenizer, .chat = chat.kept});
  run.save_model(model, 0);
  return format_message("{}: {} parameters from {}\n{}, vocabulary {}, context {}{}",
      {folder, with_commas(model.parameter_count()), origin, tokenizer ? tokenizer->name() + " tokenizer" : "no tokenizer",
          config.model.vocab, config.model.ctx, chat.note});
}

std::string import_hugging_face(const std::string& folder, const std::string& run, std::optional<double> dropout, bool without_tokenizer) {
  check_folder(folder);
  const std::string path = folder + "/config.json";
  const Json json = read_json(path);
  ModelConfig config = read_hf_config(json, path, dropout.value_or(-1));
  const WeightFiles files = open_weights(folder);
  check_names(files);
  const bool was_tied = config.output.tie;
  config.output.tie = was_tied && !has_own_head(files, weight_map(config));
  const std::shared_ptr<const Tokenizer> tokenizer = without_tokenizer ? nullptr : read_hf_tokenizer(folder, json);
  if (tokenizer && tokenizer->vocab_size() > config.vocab)
    fail("{}: the tokenizer has {} tokens, but config.json has vocab_size = {}; add --without-tokenizer to omit the tokenizer",
        {folder, tokenizer->vocab_size(), config.vocab});
  const HfChatTemplate chat = without_tokenizer ? HfChatTemplate() : read_hf_chat_template(folder, tokenizer);
  Model model(config);
  load(model, files);
  const std::string lines = write_imported_run(run, model, tokenizer.get(), folder, chat);
  return config.output.tie == was_tied ? lines : lines + "\nlm_head.weight differs from the embedding table: both are kept";
}

std::string export_hugging_face(const std::string& path, const std::string& folder) {
  const RunFolder run = RunFolder::open(path, RunFolder::Vocabulary::optional);
  Model model = run.load_model(Device::cpu);
  const ModelConfig& c = model.config();
  const Marks marks = marks_to_export(run);
  const std::string config = hf_config_json(c, marks), tokenizer = hf_tokenizer_json(run.tokenizer().get());
  const bool has_tokenizer = !tokenizer.empty();
  Json generation;  // for transformers' generate(): every id of the list ends a text
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
        "\ntransformers has no tokenizer " + (ours->eos() == Eos::line ? "that ends lines with a token" : "of the kind " + ours->name());
  return format_message("{}: {} parameters from {}\n{}, {}, vocabulary {}, context {}{}",
      {folder, with_commas(model.parameter_count()), path, weight_map(c).name, has_tokenizer ? ours->name() + " tokenizer" : "no tokenizer",
          c.vocab, c.ctx, lacking});
}

}  // namespace ricci::apps
