// A list of types. A run file chooses one by its name; at run time the choice is an index. Every type is compiled, and call_for switches
// between them. Mixers, families and optimizers are such lists.
#pragma once
#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <variant>

namespace ricci {

template <class... T> struct TypeList {
  // An array of the results of f.operator()<T>() for each type, in order.
  template <class F> static constexpr auto map(const F& f) { return std::array{f.template operator()<T>()...}; }

  template <class One> static constexpr bool has = (std::is_same_v<One, T> || ...);
  template <class One> static constexpr size_t number_of() {
    size_t number = 0;
    bool found = false;
    ((found = found || std::is_same_v<One, T>, number += !found), ...);
    return number;
  }
  // Calls f.operator()<T>() for each type, in order.
  template <class F> static void each(const F& f) { (f.template operator()<T>(), ...); }
  // Calls f.operator()<T>() for the chosen type only.
  template <class Chosen, class F> static void call_for(Chosen chosen, const F& f) {
    size_t i = 0;
    ((i++ == static_cast<size_t>(chosen) ? f.template operator()<T>() : void()), ...);
  }

  // A value of Of<T> for one of the types T.
  template <template <class> class Of> using OneOf = std::variant<Of<T>...>;

  // The config of each type: T::Config.
  struct Configs {
    template <class One> struct Entry {  // two types can have the same Config
      typename One::Config value;
    };
    std::tuple<Entry<T>...> all;
    template <class One> auto& settings() { return std::get<Entry<One>>(all).value; }
    template <class One> const auto& settings() const { return std::get<Entry<One>>(all).value; }
  };
};

}  // namespace ricci
