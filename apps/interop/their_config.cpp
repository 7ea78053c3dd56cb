#include "apps/interop/their_config.h"

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

ModelConfig checked(ModelConfig config, const JsonFile& json) {
  try {
    check(config);
  } catch (const Error& error) {
    fail("{}: {}", {json.path(), error.what()});
  }
  resolve(config);
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
