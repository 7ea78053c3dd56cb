#include "apps/interop/llama.h"

#include <algorithm>

#include "apps/interop/their_config.h"
#include "apps/interop/their_tokenizer.h"
#include "apps/terminal/table.h"

namespace ricci::apps {
namespace {

constexpr Row kLlamaRows[] = {
    {"embed_tokens.weight", "tok.weight"},
    {"layers.{i}.input_layernorm.weight", "blocks.{i}.ln1.weight"},
    {"layers.{i}.self_attn.{q,k,v}_proj.weight", "blocks.{i}.mixer.qkv.weight"},
    {"layers.{i}.self_attn.{q,k,v}_proj.bias", "blocks.{i}.mixer.qkv.bias"},
    {"layers.{i}.self_attn.q_norm.weight", "blocks.{i}.mixer.q_norm.weight"},
    {"layers.{i}.self_attn.k_norm.weight", "blocks.{i}.mixer.k_norm.weight"},
    {"layers.{i}.self_attn.o_proj.weight", "blocks.{i}.mixer.proj.weight"},
    {"layers.{i}.post_attention_layernorm.weight", "blocks.{i}.ln2.weight"},
    {"layers.{i}.mlp.{gate,up}_proj.weight", "blocks.{i}.fc.weight"},
    {"layers.{i}.mlp.down_proj.weight", "blocks.{i}.fc_out.weight"},
    {"norm.weight", "ln_f.weight"},
    {"lm_head.weight", "head.weight"},
};
// Frequencies of the rotation, which older files hold.
constexpr const char* kFrequencies[] = {"rotary_emb.inv_freq", "layers.{i}.self_attn.rotary_emb.inv_freq"};

struct Kind {
  const char *type, *with_head, *without_head;
  bool qkv_bias, qk_norm;
  std::optional<int64_t> kv_heads, head_width;  // where a config.json has none
};
constexpr Kind kKinds[] = {{"llama", "LlamaForCausalLM", "LlamaModel", false, false, {}, {}},
    {"qwen2", "Qwen2ForCausalLM", "Qwen2Model", true, false, 32, {}}, {"qwen3", "Qwen3ForCausalLM", "Qwen3Model", false, true, 32, 128}};

const Kind* find_kind(std::string_view type) {
  const auto* const found = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return kind.type == type; });
  return found == std::end(kKinds) ? nullptr : found;
}

const Kind& kind_for(const ModelConfig& c) { return kKinds[c.settings<Sdp>().qk_norm ? 2 : c.settings<Sdp>().qkv_bias.value_or(false)]; }

// Errors: keys that change what is computed in a way that no ricci model can.
void check_keys(const JsonFile& json, const Kind& kind) {
  check_architectures(json, kind.with_head, kind.without_head);
  for (const char* key : {"attention_bias", "mlp_bias", "use_sliding_window", "rope_interleaved"}) check_flag(json, key, false);
  const auto refuse = [&](const char* key, const std::string& value) {
    fail("{}: {}: {} has no equivalent here", {json.path(), key, one_line(value)});
  };
  if (const std::string act = json.text("hidden_act").value_or("silu"); act != "silu") refuse("hidden_act", act);
  for (const std::string& type : json.texts("layer_types").value_or(std::vector<std::string>{}))
    if (type != "full_attention") refuse("layer_types", type);
  if (!json.value("quantization_config").is_null())
    fail("{}: quantization_config: weights of fewer bits have no equivalent here", {json.path()});
}

void read_rope(EmbeddingConfig& c, const JsonFile& json) {
  const char* const place = json.value("rope_parameters").is_null() ? "rope_scaling" : "rope_parameters";
  const JsonFile keys(json.path() + ": " + place, json.value(place));
  if (!json.value(place).is_null() && !keys.is_there()) fail("{}: expected a JSON object", {keys.path()});
  c.positions = PositionKind::rope;
  c.rope.theta = keys.number("rope_theta").value_or(json.number("rope_theta").value_or(c.rope.theta));
  for (const double part : {keys.number("partial_rotary_factor").value_or(1), json.number("partial_rotary_factor").value_or(1)})
    if (part != 1) fail("{}: partial_rotary_factor: {} has no equivalent here", {json.path(), part});
  const std::string type = keys.text("rope_type").value_or(keys.text("type").value_or("default"));
  if (type == "default") return;
  if (type != "linear" && type != "llama3")
    fail("{}: rope_type: {} has no equivalent here; there are default, linear, llama3", {keys.path(), one_line(type)});
  const auto number = [&](const char* key) { return needed(keys.number(key), keys.path(), key); };
  c.rope.scaling = type == "linear" ? RopeScaling::linear : RopeScaling::llama3;
  c.rope.factor = number("factor");
  if (c.rope.scaling != RopeScaling::llama3) return;
  c.rope.low = number("low_freq_factor");
  c.rope.high = number("high_freq_factor");
  c.rope.trained_ctx = needed(keys.integer("original_max_position_embeddings"), keys.path(), "original_max_position_embeddings");
}

Value rope_scaling(const RotaryFrequencies& rope) {
  if (rope.scaling == RopeScaling::none) return nullptr;
  Object keys = {{"rope_type", name_of(rope.scaling)}, {"factor", rope.factor}};
  if (rope.scaling == RopeScaling::llama3) {
    keys.emplace_back("low_freq_factor", rope.low);
    keys.emplace_back("high_freq_factor", rope.high);
    keys.emplace_back("original_max_position_embeddings", rope.trained_ctx);
  }
  return keys;
}

}  // namespace

bool is_llama(std::string_view model_type) { return find_kind(model_type) != nullptr; }

ModelConfig config_of_llama(const JsonFile& json, double dropout) {
  const Kind& kind = *find_kind(needed(json.text("model_type"), json.path(), "model_type"));
  check_keys(json, kind);
  const auto size = [&](const char* key) { return needed(json.integer(key), json.path(), key); };
  ModelConfig config;
  config.preset = Preset::llama;
  apply_preset(config);
  config.vocab = size("vocab_size");
  config.ctx = size("max_position_embeddings");
  config.d = size("hidden_size");
  config.layers = size("num_hidden_layers");
  SdpConfig& attention = config.settings<Sdp>();
  attention.heads = size("num_attention_heads");
  attention.kv_heads = json.integer("num_key_value_heads");
  if (!attention.kv_heads) attention.kv_heads = kind.kv_heads;
  attention.head_width = json.integer("head_dim");
  if (!attention.head_width) attention.head_width = kind.head_width;
  if (attention.head_width && *attention.head_width % 2)
    fail("{}: head_dim: {} is odd, so that its halves cannot turn", {json.path(), *attention.head_width});
  attention.qk_norm = kind.qk_norm;
  if (kind.qkv_bias) attention.qkv_bias = true;
  config.block.ff = size("intermediate_size");
  config.block.norm_eps = json.number("rms_norm_eps").value_or(1e-6);
  config.block.dropout = dropout >= 0 ? dropout : json.number("attention_dropout").value_or(0);
  config.output.tie = json.flag("tie_word_embeddings").value_or(false);
  read_rope(config.embedding, json);
  ModelConfig complete = checked(config, json);
  SdpConfig& heads = complete.settings<Sdp>();
  if (heads.heads * heads.width(complete.d) == complete.d) heads.head_width.reset();
  return complete;
}

const char* llama_type(const ModelConfig& c) {
  const Kind& kind = kind_for(c);
  const NoEquivalent cannot{kind.type};
  check_is_plain_decoder(c, cannot);
  if (c.block.norm_kind != NormKind::rms) cannot("norm_kind", name_of(c.block.norm_kind));
  if (c.block.activation != Activation::silu) cannot("activation", name_of(c.block.activation));
  if (!c.block.gated) cannot("gated", "false");
  if (c.block.bias) cannot("bias", "true");
  if (c.settings<Sdp>().qkv_bias.value_or(false) != kind.qkv_bias) cannot("qkv_bias", "true");
  if (c.embedding.positions != PositionKind::rope) cannot("positions", name_of(c.embedding.positions));
  if (c.embedding.rope_fraction != 1) cannot("rope_fraction", format_message("{}", {c.embedding.rope_fraction}));
  // transformers asks it of Llama only.
  if (const int64_t heads = c.settings<Sdp>().heads; &kind == kKinds && c.d % heads)
    fail("model.heads: {} does not divide d = {}, which {} asks for", {heads, c.d, kind.type});
  return kind.type;
}

Architecture llama_rows(const ModelConfig& c) {
  const SdpConfig& attention = c.settings<Sdp>();
  return {kind_for(c).type, kLlamaRows, kFrequencies, "model.", "lm_head.weight", attention.key_heads() * attention.width(c.d)};
}

std::string llama_config_json(const ModelConfig& c, const Marks& marks) {
  const char* const type = llama_type(c);
  const SdpConfig& attention = c.settings<Sdp>();
  Object json = {{"architectures", Value::List{kind_for(c).with_head}}, {"model_type", type}, {"torch_dtype", "float32"},
      {"vocab_size", c.vocab}, {"max_position_embeddings", c.ctx}, {"hidden_size", c.d}, {"num_hidden_layers", c.layers},
      {"intermediate_size", c.block.feed_forward(c.d)}, {"num_attention_heads", attention.heads},
      {"num_key_value_heads", attention.key_heads()}, {"head_dim", attention.width(c.d)}, {"hidden_act", "silu"},
      {"rms_norm_eps", c.block.norm_eps}, {"rope_theta", c.embedding.rope.theta}, {"rope_scaling", rope_scaling(c.embedding.rope)},
      {"attention_bias", false}, {"mlp_bias", false}, {"attention_dropout", c.block.dropout}, {"tie_word_embeddings", c.output.tie}};
  add_marks(json, marks);
  return json_text(json, 2) + "\n";
}

}  // namespace ricci::apps
