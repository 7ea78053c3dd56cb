// Visits the parameters and constants of a module. A module is a plain struct with one visit line that names its members:
//   template <class V> void visit(V&& v) { v("weight", weight, "bias", bias); }
// The names form the parameter paths, such as blocks.0.mixer.qkv.weight. Initialization, checkpoints, optimizers and moves between devices
// all use this line.
#pragma once
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/parameter.h"

namespace ricci {

template <class T> inline constexpr bool is_module_list = false;
template <class Module> inline constexpr bool is_module_list<std::vector<Module>> = true;
template <class T> inline constexpr bool is_leaf = std::is_same_v<T, Parameter> || std::is_same_v<T, Constant>;

template <class Leaf, class Module, class F> void each(Module& owner, const std::string& prefix, const F& f);

// The argument v of a visit line, called as v(name, member, name, member, ...).
template <class Leaf, class F> struct Visitor {
  const std::string& prefix;
  const F& f;

  template <class Member, class... Others> void operator()(const std::string& name, Member& member, Others&&... others) const {
    const std::string path = prefix.empty() ? name : prefix + "." + name;
    if constexpr (std::is_same_v<Member, Leaf>) {
      if (member.value) f(path, member);
    } else if constexpr (is_module_list<Member>) {
      for (size_t i = 0; i < member.size(); ++i) each<Leaf>(member[i], path + "." + std::to_string(i), f);
    } else if constexpr (!is_leaf<Member>) {
      each<Leaf>(member, path, f);
    }
    if constexpr (sizeof...(others) > 0) (*this)(others...);
  }
};

// Calls f(path, leaf) for every Leaf (Parameter or Constant) that has a value, in the order of the visit lines.
template <class Leaf, class Module, class F> void each(Module& owner, const std::string& prefix, const F& f) {
  owner.visit(Visitor<Leaf, F>{prefix, f});
}

// For a const module, f receives const leaves. (Visit lines are not const: most callers change the members.)
template <class Leaf, class Module, class F> void each(const Module& owner, const std::string& prefix, const F& f) {
  each<Leaf>(const_cast<Module&>(owner), prefix, [&f](const std::string& path, const Leaf& leaf) { f(path, leaf); });
}

template <class Module, class F> void each_parameter(Module& owner, const F& f) { each<Parameter>(owner, "", f); }

// Sets the paths of a module's parameters and returns the parameters, for an Optimizer. The pointers refer to the module, so it must not be
// moved.
template <class Module> std::vector<Parameter*> parameters_of(Module& owner) {
  std::vector<Parameter*> all;
  each_parameter(owner, [&](const std::string& path, Parameter& p) {
    p.path = path;
    all.push_back(&p);
  });
  return all;
}

}  // namespace ricci
