// Parameters that training does not change (`freeze` in a run file), for example to fine-tune only the last blocks.
#pragma once
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/nearest.h"
#include "models/model.h"

namespace ricci {

// True if the pattern is the path or its start up to a dot, such as tok, blocks.0.fc or blocks.*.ln1. An asterisk matches one part between
// dots.
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

// Every path, and every start of one up to a dot: a mistyped pattern is compared with these.
inline std::vector<std::string> beginnings(Model& model) {
  std::set<std::string> all;
  model.each_parameter([&](const std::string& path, Parameter&) {
    for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) all.insert(path.substr(0, dot));
    all.insert(path);
  });
  return {all.begin(), all.end()};
}

// Freezes every parameter that matches a pattern. Errors: a pattern without a match, with the nearest one that has a match; nothing is left
// to train.
inline void freeze_parameters(Model& model, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    bool found = false;
    model.each_parameter([&](const std::string& path, Parameter& p) {
      if (fits_path(pattern, path)) found = p.frozen = true;
    });
    if (!found) fail("freeze: '{}' matches no parameter{}", {one_line(pattern), nearest_note(one_line(pattern), beginnings(model))});
  }
  if (model.trained_parameters().empty()) fail("freeze: no parameter is left to train");
}

}  // namespace ricci
