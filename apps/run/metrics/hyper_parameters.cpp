#include "apps/run/metrics/hyper_parameters.h"

#include <optional>

namespace ricci::apps {
namespace {

using Value = decltype(HyperParameter::value);

// Keys that say where something lies, and not how it is trained.
bool is_place(const Field& field) {
  if (field.key == "name" || field.key == "runs") return true;
  const std::string* const* const text = std::get_if<std::string*>(&field.value);
  return field.names_file && (!text || (*text)->empty() || field.names_file(**text));
}

std::optional<Value> value_of(const Field& field) {
  return std::visit(
      [&]<class Member>(const Member& member) -> std::optional<Value> {
        if constexpr (std::is_same_v<Member, bool*>) return *member;
        else if constexpr (std::is_same_v<Member, int64_t*> || std::is_same_v<Member, uint64_t*> || std::is_same_v<Member, double*>)
          return static_cast<double>(*member);
        else if constexpr (std::is_same_v<Member, std::optional<int64_t>*>)
          return *member ? std::optional<Value>(static_cast<double>(**member)) : std::nullopt;
        else if constexpr (std::is_same_v<Member, std::string*>) return *member;
        else return value_text(field);
      },
      field.value);
}

}  // namespace

std::vector<HyperParameter> hyper_parameters(const std::vector<Field>& fields) {
  std::vector<HyperParameter> parameters;
  for (const Field& field : fields) {
    if (!field.is_read || is_place(field)) continue;
    if (std::optional<Value> value = value_of(field)) parameters.push_back({field.key, std::move(*value)});
  }
  return parameters;
}

}  // namespace ricci::apps
