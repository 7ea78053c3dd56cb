// Enums with names for run files and command lines. The names are written once, after the enum, because a second list would be forgotten:
//   enum class Norm : uint8_t { pre, post };
//   constexpr auto choices(Norm) { return std::array{"pre", "post"}; }
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/error.h"
#include "core/tensor.h"

namespace ricci {

template <class E>
concept Choice = std::is_enum_v<E> && sizeof(E) == 1 && requires(E e) {
  choices(e).size();
};

template <Choice E> const char* name_of(E value) { return choices(value)[static_cast<size_t>(value)]; }

// "gpt, msa"
template <Choice E> std::string list_of() {
  std::string list;
  for (const char* name : choices(E{})) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

// The value with this name. Error: "optimizer: expected one of adamw, adam, sgd, got 'lion'".
template <Choice E> E choice_of(const char* key, std::string_view name) {
  for (size_t i = 0; i < choices(E{}).size(); ++i)
    if (choices(E{})[i] == name) return static_cast<E>(i);
  fail("{}: expected one of {}, got '{}'", {key, list_of<E>(), name});
}

constexpr auto choices(Device) { return std::array{"cpu", "cuda", "cuda_emulated"}; }
constexpr auto choices(Dtype) { return std::array{"f32", "f64", "bf16", "i64"}; }

}  // namespace ricci
