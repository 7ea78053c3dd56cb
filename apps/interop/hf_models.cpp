// Tables for config.json and the weight names. The architectures differ more in names than in arithmetic.
#include <algorithm>
#include <string_view>

#include "apps/interop/hugging_face.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

constexpr MappedName kGpt2Names[] = {
    {"wte.weight", "token_embd.weight", "tok.weight"},
    {"wpe.weight", "position_embd.weight", "pos.weight"},
    {"h.{i}.ln_1.weight", "blk.{i}.attn_norm.weight", "blocks.{i}.ln1.weight"},
    {"h.{i}.ln_1.bias", "blk.{i}.attn_norm.bias", "blocks.{i}.ln1.bias"},
    {"h.{i}.attn.c_attn.weight", "blk.{i}.attn_qkv.weight", "blocks.{i}.mixer.qkv.weight", true},
    {"h.{i}.attn.c_attn.bias", "blk.{i}.attn_qkv.bias", "blocks.{i}.mixer.qkv.bias"},
    {"h.{i}.attn.c_proj.weight", "blk.{i}.attn_output.weight", "blocks.{i}.mixer.proj.weight", true},
    {"h.{i}.attn.c_proj.bias", "blk.{i}.attn_output.bias", "blocks.{i}.mixer.proj.bias"},
    {"h.{i}.ln_2.weight", "blk.{i}.ffn_norm.weight", "blocks.{i}.ln2.weight"},
    {"h.{i}.ln_2.bias", "blk.{i}.ffn_norm.bias", "blocks.{i}.ln2.bias"},
    {"h.{i}.mlp.c_fc.weight", "blk.{i}.ffn_up.weight", "blocks.{i}.fc.weight", true},
    {"h.{i}.mlp.c_fc.bias", "blk.{i}.ffn_up.bias", "blocks.{i}.fc.bias"},
    {"h.{i}.mlp.c_proj.weight", "blk.{i}.ffn_down.weight", "blocks.{i}.fc_out.weight", true},
    {"h.{i}.mlp.c_proj.bias", "blk.{i}.ffn_down.bias", "blocks.{i}.fc_out.bias"},
    {"ln_f.weight", "output_norm.weight", "ln_f.weight"},
    {"ln_f.bias", "output_norm.bias", "ln_f.bias"},
    {"lm_head.weight", "output.weight", "head.weight"},
};
constexpr MappedName kLlamaNames[] = {
    {"embed_tokens.weight", "token_embd.weight", "tok.weight"},
    {"layers.{i}.input_layernorm.weight", "blk.{i}.attn_norm.weight", "blocks.{i}.ln1.weight"},
    {"layers.{i}.self_attn.{q,k,v}_proj.weight", "blk.{i}.attn_{q,k,v}.weight", "blocks.{i}.mixer.qkv.weight"},
    {"layers.{i}.self_attn.{q,k,v}_proj.bias", "blk.{i}.attn_{q,k,v}.bias", "blocks.{i}.mixer.qkv.bias"},
    {"layers.{i}.self_attn.q_norm.weight", "blk.{i}.attn_q_norm.weight", "blocks.{i}.mixer.q_norm.weight"},
    {"layers.{i}.self_attn.k_norm.weight", "blk.{i}.attn_k_norm.weight", "blocks.{i}.mixer.k_norm.weight"},
    {"layers.{i}.self_attn.o_proj.weight", "blk.{i}.attn_output.weight", "blocks.{i}.mixer.proj.weight"},
    {"layers.{i}.post_attention_layernorm.weight", "blk.{i}.ffn_norm.weight", "blocks.{i}.ln2.weight"},
    {"layers.{i}.mlp.{gate,up}_proj.weight", "blk.{i}.ffn_{gate,up}.weight", "blocks.{i}.fc.weight"},
    {"layers.{i}.mlp.down_proj.weight", "blk.{i}.ffn_down.weight", "blocks.{i}.fc_out.weight"},
    {"norm.weight", "output_norm.weight", "ln_f.weight"},
    {"lm_head.weight", "output.weight", "head.weight"},
};
// Older files also store causal masks and rotation frequencies.
constexpr const char *kMasks[] = {"h.{i}.attn.bias", "h.{i}.attn.masked_bias"},
                     *kFrequencies[] = {"rotary_emb.inv_freq", "layers.{i}.self_attn.rotary_emb.inv_freq"};

struct Kind {
  const char *type, *name, *with_head, *without_head;
  bool qkv_bias = false, qk_norm = false;
  std::optional<int64_t> kv_heads = {}, head_width = {};  // transformers' defaults
};
constexpr Kind kKinds[] = {{"gpt2", "GPT-2", "GPT2LMHeadModel", "GPT2Model"}, {"llama", "llama", "LlamaForCausalLM", "LlamaModel"},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", "Qwen2Model", true, false, 32},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", "Qwen3Model", false, true, 32, 128}};
constexpr const Kind &kGpt2 = kKinds[0], &kLlama = kKinds[1];

bool is_gpt2(const Kind& kind) { return &kind == &kGpt2; }

const Kind& kind_for(const ModelConfig& c) {
  if (c.embedding.positions != PositionKind::rope) return kGpt2;
  const SdpConfig& attention = c.settings<Sdp>();
  return kKinds[attention.qk_norm ? 3 : 1 + attention.qkv_bias.value_or(false)];
}

// ricci's keys, with their names in the config.json of GPT-2 and of the other models.
constexpr struct {
  std::string_view ours;
  const char *gpt2, *llama;
} kKeys[] = {{"vocab", "vocab_size", "vocab_size"}, {"ctx", "n_positions", "max_position_embeddings"}, {"d", "n_embd", "hidden_size"},
    {"layers", "n_layer", "num_hidden_layers"}, {"heads", "n_head", "num_attention_heads"}, {"kv_heads", "", "num_key_value_heads"},
    {"head_width", "", "head_dim"}, {"ff", "n_inner", "intermediate_size"}, {"norm_eps", "layer_norm_epsilon", "rms_norm_eps"},
    {"dropout", "resid_pdrop", "attention_dropout"}, {"rope_theta", "", "rope_theta"}, {"rope_factor", "", "factor"},
    {"rope_low", "", "low_freq_factor"}, {"rope_high", "", "high_freq_factor"},
    {"rope_trained_ctx", "", "original_max_position_embeddings"}};

// Replaces ricci's keys in an error message of check(), such as "model.heads: 3" or "heads = 2", by the file's keys.
std::string with_file_keys(std::string message, const Kind& kind) {
  for (const auto& [ours, gpt2, llama] : kKeys) {
    const char* const name = is_gpt2(kind) ? gpt2 : llama;
    const std::string subject = "model." + std::string(ours) + ":", other = " " + std::string(ours) + " = ";
    if (message.starts_with(subject)) message.replace(0, subject.size() - 1, name);
    if (const size_t found = message.find(other); found != message.npos) message.replace(found + 1, ours.size(), name);
  }
  return message;
}

// Activations in GPT-2's config.json. An export writes an activation's first name.
constexpr std::pair<const char*, Activation> kActivations[] = {{"gelu_new", Activation::gelu_tanh},
    {"gelu_pytorch_tanh", Activation::gelu_tanh}, {"gelu", Activation::gelu}, {"relu", Activation::relu}};

// The activation's name; null if GPT-2 lacks the activation.
const char* gpt2_name(Activation activation) {
  for (const auto& [name, known] : kActivations)
    if (known == activation) return name;
  return nullptr;
}

// Keys that change the computation, each with its only supported value.
constexpr std::pair<const char*, bool> kFlags[] = {{"scale_attn_weights", true}, {"scale_attn_by_inverse_layer_idx", false},
    {"add_cross_attention", false}, {"attention_bias", false}, {"mlp_bias", false}, {"use_sliding_window", false},
    {"rope_interleaved", false}};

// ---- Reading
// The members of a config.json or of an object in it. `where`: the file's path and the object's key.
struct Members {
  const Json& object;
  std::string where;

  template <class T> std::optional<T> find(const char* key) const { return read_member<T>(object, key, where); }
  template <class T> T get(const char* key, const T& otherwise) const { return find<T>(key).value_or(otherwise); }
  template <class T> T needed(const char* key) const {
    if (const std::optional<T> value = find<T>(key)) return *value;
    fail("{}: {} is missing", {where, key});
  }
  [[noreturn]] void refuse(const char* key, const std::string& value, const std::string& known = "") const {
    fail("{}: {}: {} has no equivalent in ricci{}", {where, key, one_line(value), known});
  }
};

void check_keys(const Members& json, const Kind& kind) {
  for (const std::string& name : json.get<std::vector<std::string>>("architectures", {}))
    if (name != kind.with_head && name != kind.without_head)
      fail("{}: architectures: {}, expected {} or {}", {json.where, one_line(name), kind.with_head, kind.without_head});
  for (const auto& [key, expected] : kFlags)
    if (json.get(key, expected) != expected) json.refuse(key, expected ? "false" : "true");
  if (!member(json.object, "quantization_config").is_null())
    fail("{}: quantization_config: quantized weights have no equivalent in ricci", {json.where});
}

void read_gpt2(ModelConfig& config, const Members& json, double dropout) {
  config.block.ff = json.find<int64_t>("n_inner");
  const std::string name = json.get<std::string>("activation_function", "gelu_new");
  const auto* const found = std::find_if(std::begin(kActivations), std::end(kActivations), [&](const auto& a) { return a.first == name; });
  if (found == std::end(kActivations)) json.refuse("activation_function", name, "; expected gelu_new, gelu_pytorch_tanh, gelu or relu");
  config.block.activation = found->second;
  const double embeddings = json.get("embd_pdrop", 0.1), attention = json.get("attn_pdrop", 0.1), residual = json.get("resid_pdrop", 0.1);
  if (dropout < 0 && (embeddings != attention || attention != residual))
    fail("{}: embd_pdrop, attn_pdrop and resid_pdrop are {}, {} and {}, but ricci has only one dropout rate; choose a rate with --dropout",
        {json.where, embeddings, attention, residual});
  config.block.dropout = dropout >= 0 ? dropout : residual;
}

// Reads the keys of rotary positions, from one of two objects: as in transformers, rope_scaling, or rope_parameters if rope_scaling is null
// or empty.
void read_rope(EmbeddingConfig& c, const Members& json) {
  const Json &scaling = member(json.object, "rope_scaling"), &parameters = member(json.object, "rope_parameters");
  const bool is_old = parameters.is_null() || !(scaling.is_null() || scaling.empty());
  const char* const place = is_old ? "rope_scaling" : "rope_parameters";
  const Members keys{member(json.object, place), json.where + ": " + place};
  if (!keys.object.is_null() && !keys.object.is_object()) fail("{}: expected a JSON object", {keys.where});
  c.positions = PositionKind::rope;
  c.rope.theta = keys.get("rope_theta", json.get("rope_theta", c.rope.theta));
  for (const double part : {keys.get("partial_rotary_factor", 1.0), json.get("partial_rotary_factor", 1.0)})
    if (part != 1) json.refuse("partial_rotary_factor", format_message("{}", {part}));
  const std::string type = keys.get("rope_type", keys.get<std::string>("type", "default"));
  if (type == "default") return;
  if (type != "linear" && type != "llama3") keys.refuse("rope_type", type, "; expected default, linear or llama3");
  c.rope.scaling = type == "linear" ? RopeScaling::linear : RopeScaling::llama3;
  c.rope.factor = keys.needed<double>("factor");
  if (c.rope.scaling != RopeScaling::llama3) return;
  c.rope.low = keys.needed<double>("low_freq_factor");
  c.rope.high = keys.needed<double>("high_freq_factor");
  c.rope.trained_ctx = keys.needed<int64_t>("original_max_position_embeddings");
}

void read_llama(ModelConfig& config, const Members& json, const Kind& kind, double dropout) {
  if (const auto act = json.get<std::string>("hidden_act", "silu"); act != "silu") json.refuse("hidden_act", act);
  for (const std::string& type : json.get<std::vector<std::string>>("layer_types", {}))
    if (type != "full_attention") json.refuse("layer_types", type);
  config.block.ff = json.needed<int64_t>("intermediate_size");
  config.block.dropout = dropout >= 0 ? dropout : json.get("attention_dropout", 0.0);
  SdpConfig& attention = config.settings<Sdp>();
  attention.kv_heads = json.find<int64_t>("num_key_value_heads");
  if (!attention.kv_heads) attention.kv_heads = kind.kv_heads;
  attention.head_width = json.find<int64_t>("head_dim");
  if (!attention.head_width) attention.head_width = kind.head_width;
  if (attention.head_width && *attention.head_width % 2)
    fail("{}: head_dim: {} is odd, but rotary positions need pairs of columns", {json.where, *attention.head_width});
  attention.qk_norm = kind.qk_norm;
  if (kind.qkv_bias) attention.qkv_bias = true;
  read_rope(config.embedding, json);
}

// ---- Writing
// Throws Error if a key does not fit this model kind.
void check_is(const ModelConfig& c, const Kind& kind) {
  const auto expect = [&](bool holds, const char* key, const std::string& value) {
    if (!holds) fail("model.{}: {} has no equivalent in {}", {key, value, kind.name});
  };
  const auto expect_flag = [&](bool value, bool expected, const char* key) { expect(value == expected, key, value ? "true" : "false"); };
  const SdpConfig& attention = c.settings<Sdp>();
  expect(c.family == family_of<Decoder>, "family", name_of(c.family));
  expect(c.mixer == kind_of<Sdp>, "mixer", names_of(c.mixer));
  expect_flag(c.causal, true, "causal");
  if (attention.window) expect(*attention.window >= c.ctx, "window", std::to_string(*attention.window));
  expect(c.block.norm == Norm::pre, "norm", name_of(c.block.norm));
  expect_flag(c.embedding.scale_embedding, false, "scale_embedding");
  expect_flag(c.output.head_bias, false, "head_bias");
  const bool gpt2 = is_gpt2(kind);
  expect(c.embedding.positions == (gpt2 ? PositionKind::learned : PositionKind::rope), "positions", name_of(c.embedding.positions));
  expect(c.block.norm_kind == (gpt2 ? NormKind::layer : NormKind::rms), "norm_kind", name_of(c.block.norm_kind));
  expect_flag(c.block.gated, !gpt2, "gated");
  expect_flag(attention.qk_norm, kind.qk_norm, "qk_norm");
  if (!gpt2) expect_flag(c.block.bias, false, "bias");
  const bool bias = gpt2 ? c.block.bias : kind.qkv_bias;
  expect_flag(attention.qkv_bias.value_or(c.block.bias), bias, "qkv_bias");
  if (gpt2) {
    expect(attention.key_heads() == attention.heads, "kv_heads", std::to_string(attention.key_heads()));
    expect(attention.heads * attention.width(c.d) == c.d, "head_width", std::to_string(attention.width(c.d)));
    expect(gpt2_name(c.block.activation), "activation", name_of(c.block.activation));
    return;
  }
  expect(c.block.activation == Activation::silu, "activation", name_of(c.block.activation));
  expect(c.embedding.rope_fraction == 1, "rope_fraction", format_message("{}", {c.embedding.rope_fraction}));
  if (&kind == &kLlama && c.d % attention.heads)  // only transformers' Llama requires it
    fail("model.heads: {}, expected a divisor of d = {} for {}", {attention.heads, c.d, kind.type});
}

Json rope_scaling(const RotaryFrequencies& rope) {
  if (rope.scaling == RopeScaling::none) return nullptr;
  Json keys = {{"rope_type", name_of(rope.scaling)}, {"factor", rope.factor}};
  if (rope.scaling == RopeScaling::llama3) {
    keys["low_freq_factor"] = rope.low;
    keys["high_freq_factor"] = rope.high;
    keys["original_max_position_embeddings"] = rope.trained_ctx;
  }
  return keys;
}

}  // namespace

ModelConfig read_hf_config(const Json& json, const std::string& path, double dropout) {
  const Members keys{json, path};
  const std::string type = keys.get<std::string>("model_type", "(none)");
  const auto* const found = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& each) { return each.type == type; });
  if (found == std::end(kKinds)) fail("{}: model_type is {}, expected gpt2, llama, qwen2 or qwen3", {path, one_line(type)});
  const Kind& kind = *found;
  const bool gpt2 = is_gpt2(kind);
  check_keys(keys, kind);
  const auto name = [&](std::string_view ours) {
    const auto* const key = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const auto& each) { return each.ours == ours; });
    return gpt2 ? key->gpt2 : key->llama;
  };
  ModelConfig config;
  if (!gpt2) {
    config.preset = Preset::llama;
    apply_preset(config);
  }
  config.vocab = keys.needed<int64_t>(name("vocab"));
  config.ctx = keys.needed<int64_t>(name("ctx"));
  config.d = keys.needed<int64_t>(name("d"));
  config.layers = keys.needed<int64_t>(name("layers"));
  SdpConfig& attention = config.settings<Sdp>();
  attention.heads = keys.needed<int64_t>(name("heads"));
  config.block.norm_eps = keys.get(name("norm_eps"), gpt2 ? config.block.norm_eps : 1e-6);
  config.output.tie = keys.get("tie_word_embeddings", gpt2);
  if (gpt2) read_gpt2(config, keys, dropout);
  else read_llama(config, keys, kind, dropout);
  try {
    check(config);
  } catch (const Error& error) {
    fail("{}: {}", {path, with_file_keys(error.what(), kind)});
  }
  if (attention.heads * attention.width(config.d) == config.d) attention.head_width.reset();
  return config;
}

const char* hf_model_type(const ModelConfig& config) {
  const Kind& kind = kind_for(config);
  check_is(config, kind);
  return kind.type;
}

std::string hf_config_json(const ModelConfig& c, const Marks& marks) {
  const Kind& kind = kind_for(c);
  const SdpConfig& attention = c.settings<Sdp>();
  Json json = {{"architectures", Json::array({kind.with_head})}, {"model_type", hf_model_type(c)}};
  if (is_gpt2(kind))
    json.update({{"vocab_size", c.vocab}, {"n_positions", c.ctx}, {"n_embd", c.d}, {"n_layer", c.layers}, {"n_head", attention.heads},
        {"n_inner", c.block.feed_forward(c.d)}, {"activation_function", gpt2_name(c.block.activation)},
        {"layer_norm_epsilon", c.block.norm_eps}, {"tie_word_embeddings", c.output.tie}, {"embd_pdrop", c.block.dropout},
        {"attn_pdrop", c.block.dropout}, {"resid_pdrop", c.block.dropout}});
  else
    json.update({{"torch_dtype", "float32"}, {"vocab_size", c.vocab}, {"max_position_embeddings", c.ctx}, {"hidden_size", c.d},
        {"num_hidden_layers", c.layers}, {"intermediate_size", c.block.feed_forward(c.d)}, {"num_attention_heads", attention.heads},
        {"num_key_value_heads", attention.key_heads()}, {"head_dim", attention.width(c.d)}, {"hidden_act", "silu"},
        {"rms_norm_eps", c.block.norm_eps}, {"rope_theta", c.embedding.rope.theta}, {"rope_scaling", rope_scaling(c.embedding.rope)},
        {"attention_bias", false}, {"mlp_bias", false}, {"attention_dropout", c.block.dropout}, {"tie_word_embeddings", c.output.tie}});
  add_marks(json, marks);
  return to_text(json, 2) + "\n";
}

WeightMap weight_map(const ModelConfig& c, WeightFormat format) {
  const Kind& kind = kind_for(c);
  if (is_gpt2(kind)) return {kind.name, kGpt2Names, kMasks, "transformer.", 0, format};
  const SdpConfig& attention = c.settings<Sdp>();
  return {kind.name, kLlamaNames, kFrequencies, "model.", attention.key_heads() * attention.width(c.d), format};
}

NamedTensors export_weights(Model& model, WeightFormat format) {
  const WeightMap map = weight_map(model.config(), format);
  if (std::string_view(hf_model_type(model.config())) != kGpt2.type) return to_external(model, map);
  ModelConfig with_biases = model.config();
  with_biases.block.bias = with_biases.block.norm_bias = true;
  Model full(with_biases);
  std::map<std::string, Tensor> values;
  model.each_parameter([&](const std::string& path, Parameter& p) { values[path] = p.value; });
  full.load([&](const std::string& path, const Shape& shape) {
    return values.contains(path) ? values[path] : zeros(shape, Dtype::f32, Device::cpu);
  });
  return to_external(full, map);
}

}  // namespace ricci::apps
