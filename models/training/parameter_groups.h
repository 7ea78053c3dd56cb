// Selects parameters by their paths, for the patterns of freeze, lr_of and decay_of in a run file and for the groups of norms_every.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/fields.h"
#include "core/nearest.h"
#include "cuda/device/device.h"
#include "models/model.h"
#include "ops/optimizers/optimizers.h"

namespace ricci {

// True if the pattern is the path, or the start of the path up to a dot, such as tok, blocks.0.fc or blocks.*.ln1. An asterisk matches one
// part between dots.
inline bool fits_path(const std::string& pattern, const std::string& path) {
  for (size_t in_pattern = 0, in_path = 0; in_path <= path.size();) {
    const size_t end = std::min(pattern.find('.', in_pattern), pattern.size()), path_end = std::min(path.find('.', in_path), path.size());
    const std::string part = pattern.substr(in_pattern, end - in_pattern);
    if (part != "*" && part != path.substr(in_path, path_end - in_path)) return false;
    if (end == pattern.size()) return true;
    in_pattern = end + 1;
    in_path = path_end + 1;
  }
  return false;
}

// Returns every path, and every start of a path up to a dot. Errors suggest the one nearest to a mistyped pattern.
inline std::vector<std::string> beginnings(const std::vector<Parameter*>& parameters) {
  std::set<std::string> all;
  for (const Parameter* p : parameters) {
    for (size_t dot = p->path.find('.'); dot != std::string::npos; dot = p->path.find('.', dot + 1)) all.insert(p->path.substr(0, dot));
    all.insert(p->path);
  }
  return {all.begin(), all.end()};
}

// Calls f(index) for each parameter that matches the pattern. Error: no parameter matches; the message suggests the nearest pattern that
// does, and calls the parameters `kind`.
template <class F>
void each_match(const char* key, const std::string& pattern, const char* kind, const std::vector<Parameter*>& parameters, const F& f) {
  bool found = false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!fits_path(pattern, parameters[i]->path)) continue;
    f(i);
    found = true;
  }
  const std::string shown = one_line(pattern);
  if (!found) fail("{}: '{}' matches no {}{}", {key, shown, kind, nearest_note(shown, beginnings(parameters))});
}

// Marks parameters that training does not change, for example to fine-tune only the last blocks. Errors: as for each_match; no parameter is
// left to train.
inline void freeze_parameters(Model& model, const std::vector<std::string>& patterns) {
  const std::vector<Parameter*> all = model.parameters();
  for (const std::string& pattern : patterns) each_match("freeze", pattern, "parameter", all, [&](size_t i) { all[i]->frozen = true; });
  if (model.trained_parameters().empty()) fail("freeze: no parameter is left to train");
}

// The start of a path up to its last number, or the first name if the path contains no number: blocks.3 for blocks.3.mixer.qkv.weight,
// stack.4.blocks.0 for stack.4.blocks.0.fc.bias, and tok for tok.weight.
inline std::string group_of(const std::string& path) {
  size_t end = path.find('.');
  for (size_t number = end; number < path.size();) {
    const size_t after = path.find_first_not_of("0123456789", number + 1);
    if (after == number + 1 || after >= path.size() || path[after] != '.') break;
    end = after;
    number = path.find('.', end + 1);
  }
  return path.substr(0, end);
}

// Appends one norm for each group of parameters, as NAME.GROUP. `part` selects the tensor: &Parameter::grad or &Parameter::unrounded.
template <class Part> void add_norms(const char* name, const std::vector<Parameter*>& parameters, Part part, NamedNumbers& norms) {
  std::map<std::string, std::vector<Tensor>> groups;
  for (const Parameter* p : parameters)
    if (const Tensor t = std::invoke(part, *p)) groups[group_of(p->path)].push_back(t);
  for (const auto& [group, tensors] : groups) norms.emplace_back(name + ("." + group), item(gradient_norm(tensors)));
}

}  // namespace ricci
