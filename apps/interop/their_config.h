// Checks that readers and writers of a config.json share.
#pragma once
#include <optional>
#include <string>

#include "core/json/file.h"
#include "models/config.h"

namespace ricci::apps {

// Error: `architectures` names another class than these two.
void check_architectures(const JsonFile& config, const char* with_head, const char* without_head);
// Error: the flag of a config.json is there and is not `expected`, the only value that has an equivalent here.
void check_flag(const JsonFile& config, const char* key, bool expected);

// Error: a value that a config.json must have is missing. `where`: the file, and the key around it.
template <class T> T needed(const std::optional<T>& value, const std::string& where, const char* key) {
  if (!value) fail("{}: {} is missing", {where, key});
  return *value;
}

// The config, complete. Errors name the file.
ModelConfig checked(ModelConfig config, const JsonFile& json);

// Fails for a key of ours.
struct NoEquivalent {
  const char* architecture;
  [[noreturn]] void operator()(const char* key, const std::string& value) const {
    fail("model.{}: {} has no equivalent in {}", {key, value, architecture});
  }
};

// Error: the model is no decoder with attention to all earlier tokens and with norms before its maps.
void check_is_plain_decoder(const ModelConfig& config, const NoEquivalent& cannot);

}  // namespace ricci::apps
