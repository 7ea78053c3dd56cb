#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "apps/interop/foreign_model.h"
#include "apps/interop/interop.h"
#include "apps/interop/llama.h"
#include "apps/interop/their_config.h"
#include "apps/interop/their_tokenizer.h"
#include "apps/run/run.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/table.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/files/folder.h"
#include "core/json/file.h"
#include "core/json/value.h"

namespace ricci::apps {
namespace {

constexpr Row kGpt2Rows[] = {
    {"wte.weight", "tok.weight"},
    {"wpe.weight", "pos.weight"},
    {"h.{i}.ln_1.weight", "blocks.{i}.ln1.weight"},
    {"h.{i}.ln_1.bias", "blocks.{i}.ln1.bias"},
    {"h.{i}.attn.c_attn.weight", "blocks.{i}.mixer.qkv.weight", true},
    {"h.{i}.attn.c_attn.bias", "blocks.{i}.mixer.qkv.bias"},
    {"h.{i}.attn.c_proj.weight", "blocks.{i}.mixer.proj.weight", true},
    {"h.{i}.attn.c_proj.bias", "blocks.{i}.mixer.proj.bias"},
    {"h.{i}.ln_2.weight", "blocks.{i}.ln2.weight"},
    {"h.{i}.ln_2.bias", "blocks.{i}.ln2.bias"},
    {"h.{i}.mlp.c_fc.weight", "blocks.{i}.fc.weight", true},
    {"h.{i}.mlp.c_fc.bias", "blocks.{i}.fc.bias"},
    {"h.{i}.mlp.c_proj.weight", "blocks.{i}.fc_out.weight", true},
    {"h.{i}.mlp.c_proj.bias", "blocks.{i}.fc_out.bias"},
    {"ln_f.weight", "ln_f.weight"},
    {"ln_f.bias", "ln_f.bias"},
    {"lm_head.weight", "head.weight"},
};
// Causal masks, which older files hold.
constexpr const char* kMasks[] = {"h.{i}.attn.bias", "h.{i}.attn.masked_bias"};
constexpr const char* kHead = "lm_head.weight";

// Names of an activation on both sides. The first name of several is the one that is written.
constexpr std::pair<const char*, Activation> kActivations[] = {{"gelu_new", Activation::gelu_tanh},
    {"gelu_pytorch_tanh", Activation::gelu_tanh}, {"gelu", Activation::gelu}, {"relu", Activation::relu}};

// Keys that change what is computed in a way that no ricci model can, and the value that all others have.
constexpr std::pair<const char*, bool> kFlags[] = {
    {"scale_attn_weights", true}, {"scale_attn_by_inverse_layer_idx", false}, {"add_cross_attention", false}};

Architecture gpt2_rows() { return {"GPT-2", kGpt2Rows, kMasks, "transformer.", kHead}; }

bool turns(const ModelConfig& config) { return config.embedding.positions == PositionKind::rope; }

void check_architecture(const JsonFile& config) {
  check_architectures(config, "GPT2LMHeadModel", "GPT2Model");
  for (const auto& [key, value] : kFlags) check_flag(config, key, value);
}

Activation activation_of(const JsonFile& config) {
  const std::string name = config.text("activation_function").value_or("gelu_new");
  std::string known;
  for (const auto& [theirs, ours] : kActivations) {
    if (name == theirs) return ours;
    known += (known.empty() ? "" : ", ") + std::string(theirs);
  }
  fail("{}: activation_function: {} has no equivalent here; there are {}", {config.path(), one_line(name), known});
}

// Null if GPT-2 has no such activation.
const char* their_name(Activation activation) {
  for (const auto& [theirs, ours] : kActivations)
    if (ours == activation) return theirs;
  return nullptr;
}

double dropout_of(const JsonFile& config, double chosen) {
  if (chosen >= 0) return chosen;
  const auto rate = [&](const char* key) { return config.number(key).value_or(0.1); };
  const double embeddings = rate("embd_pdrop"), attention = rate("attn_pdrop"), residual = rate("resid_pdrop");
  if (embeddings != attention || attention != residual)
    fail("{}: embd_pdrop, attn_pdrop and resid_pdrop are {}, {} and {}; here they are one rate: choose it with --dropout",
        {config.path(), embeddings, attention, residual});
  return residual;
}

// Error: the key of the model that GPT-2 has no equivalent of.
void check_is_gpt2(const ModelConfig& c) {
  const NoEquivalent cannot{"GPT-2"};
  check_is_plain_decoder(c, cannot);
  const SdpConfig& attention = c.settings<Sdp>();
  if (attention.qk_norm) cannot("qk_norm", "true");
  if (attention.key_heads() != attention.heads) cannot("kv_heads", std::to_string(attention.key_heads()));
  if (attention.heads * attention.width(c.d) != c.d) cannot("head_width", std::to_string(attention.width(c.d)));
  if (attention.qkv_bias && *attention.qkv_bias != c.block.bias) cannot("qkv_bias", *attention.qkv_bias ? "true" : "false");
  if (c.block.norm_kind != NormKind::layer) cannot("norm_kind", name_of(c.block.norm_kind));
  if (c.block.gated) cannot("gated", "true");
  if (!their_name(c.block.activation)) cannot("activation", name_of(c.block.activation));
  if (c.embedding.positions != PositionKind::learned) cannot("positions", name_of(c.embedding.positions));
}

// The model that a config.json describes. `dropout`: the one rate that ricci has; where it is below 0 the three rates of the file
// must be one. Errors name the file and the key: another architecture, what a ricci model cannot do, three rates.
ModelConfig config_of_gpt2(const JsonFile& json, double dropout) {
  check_architecture(json);
  const auto size = [&](const char* key) { return needed(json.integer(key), json.path(), key); };
  ModelConfig config;
  config.vocab = size("vocab_size");
  config.ctx = size("n_positions");
  config.d = size("n_embd");
  config.layers = size("n_layer");
  config.settings<Sdp>().heads = size("n_head");
  config.block.ff = json.integer("n_inner");
  config.block.activation = activation_of(json);
  config.block.norm_eps = json.number("layer_norm_epsilon").value_or(config.block.norm_eps);
  config.block.dropout = dropout_of(json, dropout);
  config.output.tie = json.flag("tie_word_embeddings").value_or(true);
  return checked(config, json);
}

// The weights of the folder in the model. The first row is the embedding table. All names have the prefix of the rows, or none has. A tied
// output map may be in the files, too; then it must be the embedding table.
void load(Model& model, Architecture rows, const WeightFiles& files) {
  if (!files.contains(rows.prefix + rows.rows[0].theirs)) rows.prefix.clear();
  const std::string table = rows.prefix + rows.rows[0].theirs;
  std::vector<const char*> not_read(rows.not_read.begin(), rows.not_read.end());
  if (model.config().output.tie && files.contains(kHead)) {
    if (files.contains(table)) {
      const Tensor head = files.file_of(kHead).load_f32(kHead), tok = files.file_of(table).load_f32(table);
      if (!(head.shape() == tok.shape()) || std::memcmp(head.raw(), tok.raw(), static_cast<size_t>(tok.bytes())) != 0)
        fail("{}: {} is not {}, though tie_word_embeddings is true", {files.path(), kHead, table});
    }
    not_read.push_back(kHead);
  }
  rows.not_read = not_read;
  load_theirs(model, rows, files);
}

// ---- Writing: an export that was interrupted has written no config.json, and the same export goes on with what it left
constexpr const char* kWeights = "model.safetensors";

bool holds(const SafetensorsFile& file, const NamedTensors& tensors) {
  const auto is_there = [&](const auto& named) {
    const auto& [name, value] = named;
    if (!file.contains(name) || file.dtype(name) != value.dtype() || !(file.shape(name) == value.shape())) return false;
    return std::memcmp(file.load(name).raw(), value.raw(), static_cast<size_t>(value.bytes())) == 0;
  };
  return file.names().size() == tensors.size() && std::all_of(tensors.begin(), tensors.end(), is_there);
}

// As generate of transformers reads it: every id of the list ends a text. Empty without such ids.
std::string generation_config(const Marks& marks) {
  Object json;
  add_marks(json, marks);
  return marks.ends.empty() ? "" : json_text(json, 2) + "\n";
}

// Writes those files that are not there yet. Error: the folder holds another file that would be read with them, or in their place.
void write_folder(const Folder& place, const std::vector<std::pair<const char*, std::string>>& texts, const NamedTensors& tensors) {
  const auto refuse = [&](const char* name) { fail("{}: holds a model already ({})", {place.path(), name}); };
  for (const char* name : {"config.json", "model.safetensors.index.json", "vocab.json", "merges.txt"})
    if (OpenFile::find({place, name})) refuse(name);
  for (const auto& [name, text] : texts)
    if (OpenFile::find({place, name}) && read_text({place, name}) != text) refuse(name);
  const std::optional<SafetensorsFile> weights = SafetensorsFile::find({place, kWeights});
  if (weights && !holds(*weights, tensors)) refuse(kWeights);
  remove_abandoned_files(place);
  if (!weights) save_checked_safetensors({place, kWeights}, tensors, {{"format", "pt"}});
  for (const auto& [name, text] : texts)
    if (!text.empty()) write_file_atomically({place, name}, text);
}

// Names the tokenizer of an export, or the reason that it has none.
std::string tokenizer_note(const Tokenizer* tokenizer, bool is_written) {
  if (is_written || !tokenizer) return tokenizer ? tokenizer->name() + " tokenizer" : "no tokenizer";
  const bool lines = tokenizer->eos() == Eos::line;
  return "no tokenizer (transformers has none " + (lines ? "that ends lines with a piece)" : "of the kind " + tokenizer->name() + ")");
}

}  // namespace

std::string gpt2_config_json(const ModelConfig& c, const Marks& marks) {
  check_is_gpt2(c);
  Object json = {{"architectures", Value::List{"GPT2LMHeadModel"}}, {"model_type", "gpt2"}, {"vocab_size", c.vocab}, {"n_positions", c.ctx},
      {"n_embd", c.d}, {"n_layer", c.layers}, {"n_head", c.settings<Sdp>().heads}, {"n_inner", c.block.feed_forward(c.d)},
      {"activation_function", their_name(c.block.activation)}, {"layer_norm_epsilon", c.block.norm_eps},
      {"tie_word_embeddings", c.output.tie}, {"embd_pdrop", c.block.dropout}, {"attn_pdrop", c.block.dropout},
      {"resid_pdrop", c.block.dropout}};
  add_marks(json, marks);
  return json_text(json, 2) + "\n";
}

Model with_gpt2_biases(Model& model) {
  check_is_gpt2(model.config());
  ModelConfig with_biases = model.config();
  with_biases.block.bias = with_biases.block.norm_bias = true;
  Model full(with_biases);
  std::map<std::string, Tensor> values;
  model.each_parameter([&](const std::string& path, Parameter& p) { values[path] = p.value; });
  full.load([&](const std::string& path, const Shape& shape) {
    return values.contains(path) ? values[path] : zeros(shape, Dtype::f32, Device::cpu);
  });
  return full;
}

std::vector<std::pair<std::string, Tensor>> gpt2_weights(Model& model) {
  Model full = with_gpt2_biases(model);
  return as_theirs(full, gpt2_rows());
}

std::string import_hugging_face(const std::string& folder, const std::string& run, const ImportOptions& options) {
  if (is_there(folder + "/config.yaml")) fail("{}: is a run already; import reads folders of Hugging Face", {folder});
  const JsonFile json(folder + "/config.json");
  const std::string type = json.text("model_type").value_or("(none)");
  if (type != "gpt2" && !is_llama(type))
    fail("{}: model_type is {}; gpt2, llama, qwen2 and qwen3 can be converted", {json.path(), one_line(type)});
  const ModelConfig config = is_llama(type) ? config_of_llama(json, options.dropout) : config_of_gpt2(json, options.dropout);
  const WeightFiles files = WeightFiles::in_folder(folder);
  const std::shared_ptr<const Tokenizer> tokenizer = options.without_tokenizer ? nullptr : read_their_tokenizer(folder, json);
  if (tokenizer && tokenizer->vocab_size() > config.vocab)
    fail("{}: its tokenizer has {} tokens, but its config.json has vocab_size: {}; --without-tokenizer leaves it out",
        {folder, tokenizer->vocab_size(), config.vocab});
  const TheirTalks talks = options.without_tokenizer ? TheirTalks() : read_their_talks(folder, tokenizer);
  Model model(config);
  load(model, turns(config) ? llama_rows(config) : gpt2_rows(), files);
  return write_imported_run(run, model, tokenizer.get(), folder, talks);
}

std::string export_hugging_face(const std::string& path, const std::string& which, const std::string& folder) {
  const RunFolder run = RunFolder::open(path, RunFolder::Vocabulary::optional);
  Model model = run.load_model(Device::cpu, which);
  const bool llama = turns(model.config());
  const ImportedTemplate talks = talks_of(run);
  const Marks marks = marks_of(run);
  const std::string config = llama ? llama_config_json(model.config(), marks) : gpt2_config_json(model.config(), marks),
                    tokenizer = their_tokenizer(run.tokenizer().get());
  make_folders(folder);
  write_folder(Folder(folder),
      {{"tokenizer.json", tokenizer}, {kTemplateFile, tokenizer.empty() ? "" : talks.file},
          {"tokenizer_config.json", tokenizer.empty() ? "" : tokenizer_config(*run.tokenizer(), marks, model.config().ctx, talks.member)},
          {"generation_config.json", generation_config(marks)}, {"config.json", config}},
      llama ? as_theirs(model, llama_rows(model.config())) : gpt2_weights(model));
  return format_message("{}: {} parameters from {}, {}, {}, vocabulary {}, context {}",
      {folder, with_commas(model.parameter_count()), path, llama ? llama_type(model.config()) : "GPT-2",
          tokenizer_note(run.tokenizer().get(), !tokenizer.empty()), model.config().vocab, model.config().ctx});
}

}  // namespace ricci::apps
