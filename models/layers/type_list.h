// A list of types. One is chosen at run time by its number.
#pragma once
#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>

namespace ricci {

template <class... T> struct TypeList {
  // f.operator()<T>() of each as an array, in their order.
  template <class F> static constexpr auto map(const F& f) { return std::array{f.template operator()<T>()...}; }

  template <class One> static constexpr bool has = (std::is_same_v<One, T> || ...);
  template <class One> static constexpr size_t number_of() {
    size_t number = 0;
    bool found = false;
    ((found = found || std::is_same_v<One, T>, number += !found), ...);
    return number;
  }
  // f.operator()<T>() for each of them, in their order.
  template <class F> static void each(const F& f) { (f.template operator()<T>(), ...); }
  // The same for the one that was chosen, by its number.
  template <class Chosen, class F> static void call_for(Chosen chosen, const F& f) {
    size_t i = 0;
    ((i++ == static_cast<size_t>(chosen) ? f.template operator()<T>() : void()), ...);
  }

  // The config of each of them: T::Config.
  struct Configs {
    template <class One> struct Entry {  // two of them may have the same config
      typename One::Config value;
    };
    std::tuple<Entry<T>...> all;
    template <class One> auto& settings() { return std::get<Entry<One>>(all).value; }
    template <class One> const auto& settings() const { return std::get<Entry<One>>(all).value; }
  };
};

}  // namespace ricci
