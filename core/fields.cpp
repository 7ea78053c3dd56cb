// Checks values against the bounds of their keys. The messages contain the allowed numbers.
#include "core/fields.h"

#include <cmath>
#include <type_traits>
#include <utility>

#include "core/error.h"

namespace ricci {
namespace {

bool fits(double value, const Bounds& b) {
  const bool above = b.has_low ? value >= b.low : value > b.low, below = b.has_high ? value <= b.high : value < b.high;
  return std::isfinite(value) && above && below;
}

// The allowed numbers: "0 or more and less than 1".
std::string expected(const Bounds& b, double value, bool is_whole) {
  const std::string low = format_message(b.has_low ? "{} or more" : "more than {}", {b.low});
  if (std::isinf(b.high) || (is_whole && value < b.low)) return low;
  if (is_whole) return format_message("{} or less", {b.high});
  return b.has_high ? format_message("{} to {}", {b.low, b.high}) : low + format_message(" and less than {}", {b.high});
}

template <class Number> void check_number(const Field& field, Number value) {
  const auto number = static_cast<double>(value);
  if (std::isinf(field.bounds.low) || fits(number, field.bounds)) return;
  fail("{}: {}, expected {}", {field.key, value, expected(field.bounds, number, std::is_integral_v<Number>)});
}

}  // namespace

void check_bounds(const std::vector<Field>& fields) {
  for (const Field& field : fields)
    std::visit(
        [&]<class Member>(const Member& member) {
          if constexpr (std::is_same_v<Member, int64_t*> || std::is_same_v<Member, double*>) check_number(field, *member);
          if constexpr (std::is_same_v<Member, std::optional<int64_t>*>)
            if (*member) check_number(field, **member);
          if constexpr (std::is_same_v<Member, std::vector<int64_t>*> || std::is_same_v<Member, std::vector<double>*>)
            for (const auto number : *member) check_number(field, number);
          if constexpr (std::is_same_v<Member, NamedNumbers*>)
            for (const auto& [name, number] : *member) check_number(field, number);
        },
        field.value);
}

}  // namespace ricci
