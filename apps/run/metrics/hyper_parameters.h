// The config of a run as hyper-parameters for TensorBoard.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "apps/run/config/config.h"
#include "apps/run/metrics/tensorboard.h"

namespace ricci::apps {

using HyperValue = decltype(HyperParameter::value);

// Keys that say where something lies, and not how it is trained.
inline bool is_place(const Field& field) {
  if (field.key == "name" || field.key == "runs") return true;
  const std::string* const* const text = std::get_if<std::string*>(&field.value);
  return field.names_file && (!text || (*text)->empty() || field.names_file(**text));
}

inline std::optional<HyperValue> hyper_value(const Field& field) {
  return std::visit(
      [&]<class Member>(const Member& member) -> std::optional<HyperValue> {
        if constexpr (std::is_same_v<Member, bool*>) return *member;
        else if constexpr (std::is_same_v<Member, int64_t*> || std::is_same_v<Member, uint64_t*> || std::is_same_v<Member, double*>)
          return static_cast<double>(*member);
        else if constexpr (std::is_same_v<Member, std::optional<int64_t>*>)
          return *member ? std::optional<HyperValue>(static_cast<double>(**member)) : std::nullopt;
        else if constexpr (std::is_same_v<Member, std::string*>) return *member;
        else return value_text(field);
      },
      field.value);
}

// The keys that the run reads, except its name: numbers and truth values as such, everything else as config.yaml writes it. A key that is
// null is left out.
inline std::vector<HyperParameter> hyper_parameters(const std::vector<Field>& fields) {
  std::vector<HyperParameter> parameters;
  for (const Field& field : fields) {
    if (!field.is_read || is_place(field)) continue;
    if (std::optional<HyperValue> value = hyper_value(field)) parameters.push_back({field.key, std::move(*value)});
  }
  return parameters;
}

template <class Config> std::vector<HyperParameter> hyper_parameters(Config config) { return hyper_parameters(fields_of(config)); }

}  // namespace ricci::apps
