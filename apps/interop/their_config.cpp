#include "apps/interop/their_config.h"

#include <string_view>

namespace ricci::apps {

void check_architectures(const JsonFile& config, const char* with_head, const char* without_head) {
  for (const std::string& name : config.texts("architectures").value_or(std::vector<std::string>{}))
    if (name != with_head && name != without_head)
      fail("{}: architectures is {}; {} and {} can be converted", {config.path(), one_line(name), with_head, without_head});
}

void check_flag(const JsonFile& config, const char* key, bool expected) {
  if (config.flag(key).value_or(expected) != expected)
    fail("{}: {}: {} has no equivalent here", {config.path(), key, expected ? "false" : "true"});
}

namespace {

// Our keys with their names in GPT-2, and in Llama and Qwen.
constexpr struct {
  std::string_view ours, gpt2, llama;
} kKeys[] = {{"vocab", "vocab_size", "vocab_size"}, {"ctx", "n_positions", "max_position_embeddings"}, {"d", "n_embd", "hidden_size"},
    {"layers", "n_layer", "num_hidden_layers"}, {"heads", "n_head", "num_attention_heads"}, {"kv_heads", "", "num_key_value_heads"},
    {"head_width", "", "head_dim"}, {"ff", "n_inner", "intermediate_size"}, {"norm_eps", "layer_norm_epsilon", "rms_norm_eps"},
    {"dropout", "resid_pdrop", "attention_dropout"}, {"rope_theta", "", "rope_theta"}, {"rope_factor", "", "factor"},
    {"rope_low", "", "low_freq_factor"}, {"rope_high", "", "high_freq_factor"},
    {"rope_trained_ctx", "", "original_max_position_embeddings"}};

// A message with the keys of the file in place of ours, which it has as "model.heads: 3" and "heads = 2".
std::string with_their_keys(std::string message, bool is_gpt2) {
  for (const auto& [ours, gpt2, llama] : kKeys) {
    const std::string_view theirs = is_gpt2 ? gpt2 : llama;
    const std::string subject = "model." + std::string(ours) + ":", other = " " + std::string(ours) + " = ";
    if (message.starts_with(subject)) message.replace(0, subject.size() - 1, theirs);
    if (const size_t found = message.find(other); found != message.npos) message.replace(found + 1, ours.size(), theirs);
  }
  return message;
}

}  // namespace

ModelConfig checked(ModelConfig config, const JsonFile& json) {
  try {
    check(config);
  } catch (const Error& error) {
    fail("{}: {}", {json.path(), with_their_keys(error.what(), json.text("model_type") == "gpt2")});
  }
  return config;
}

void check_is_plain_decoder(const ModelConfig& c, const NoEquivalent& cannot) {
  if (c.family != family_of<Decoder>) cannot("family", name_of(c.family));
  if (c.mixer != kind_of<Sdp>) cannot("mixer", name_of(c.mixer));
  if (!c.causal) cannot("causal", "false");
  if (const auto window = c.settings<Sdp>().window; window && *window < c.ctx) cannot("window", std::to_string(*window));
  if (c.block.norm != Norm::pre) cannot("norm", name_of(c.block.norm));
  if (c.embedding.scale_embedding) cannot("scale_embedding", "true");
  if (c.output.head_bias) cannot("head_bias", "true");
}

}  // namespace ricci::apps
