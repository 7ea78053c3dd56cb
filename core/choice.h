// Enums with named values, for run files and command lines. The names are listed once, after the enum:
//   enum class Norm : uint8_t { pre, post };
//   constexpr auto choices(Norm) { return std::array{"pre", "post"}; }
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"

namespace ricci {

template <class E>
concept Choice = std::is_enum_v<E> && sizeof(E) == 1 && requires(E e) {
  choices(e).size();
};

template <Choice E> const char* name_of(E value) { return choices(value)[static_cast<size_t>(value)]; }

// A list of choices, such as the mixer of each layer. A single choice is a list of one.
template <Choice E> struct ChoiceList {
  std::vector<uint8_t> numbers;  // the enum values, as in ChoiceListMember

  ChoiceList(E one) : numbers{static_cast<uint8_t>(one)} {}
  ChoiceList(std::initializer_list<E> all) {
    for (const E each : all) numbers.push_back(static_cast<uint8_t>(each));
  }
  size_t size() const { return numbers.size(); }
  E operator[](size_t i) const { return static_cast<E>(numbers[i]); }
  bool contains(E one) const { return std::find(numbers.begin(), numbers.end(), static_cast<uint8_t>(one)) != numbers.end(); }
  bool operator==(const ChoiceList&) const = default;
};

// The names: "gpt, msa".
template <Choice E> std::string names_of(const ChoiceList<E>& all) {
  std::string names;
  for (size_t i = 0; i < all.size(); ++i) names += (names.empty() ? "" : ", ") + std::string(name_of(all[i]));
  return names;
}
template <Choice E> std::string list_of() {
  std::string list;
  for (const char* name : choices(E{})) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

// The value with this name. Error: "optimizer: expected one of adamw, adam, sgd, muon, got 'lion'".
template <Choice E> E choice_of(const char* key, std::string_view name) {
  for (size_t i = 0; i < choices(E{}).size(); ++i)
    if (choices(E{})[i] == name) return static_cast<E>(i);
  fail("{}: expected one of {}, got '{}'", {key, list_of<E>(), name});
}

constexpr auto choices(Device) { return std::array{"cpu", "cuda", "cuda_emulated"}; }
constexpr auto choices(Dtype) { return std::array{"f32", "f64", "bf16", "i64"}; }

}  // namespace ricci
