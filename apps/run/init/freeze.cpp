#include "apps/run/init/freeze.h"

#include <algorithm>
#include <set>

#include "apps/run/config/nearest.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= path.size();) {
    const size_t dot = std::min(path.find('.', at), path.size());
    parts.push_back(path.substr(at, dot - at));
    at = dot + 1;
  }
  return parts;
}

// Every path, and every beginning of one up to a dot.
std::vector<std::string> beginnings(Model& model) {
  std::set<std::string> all;
  model.each_parameter([&](const std::string& path, Parameter&) {
    for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) all.insert(path.substr(0, dot));
    all.insert(path);
  });
  return {all.begin(), all.end()};
}

}  // namespace

bool fits_path(const std::string& pattern, const std::string& path) {
  const std::vector<std::string> wanted = parts_of(pattern), parts = parts_of(path);
  if (wanted.size() > parts.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] != "*" && wanted[i] != parts[i]) return false;
  return true;
}

void freeze_parameters(Model& model, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    bool found = false;
    model.each_parameter([&](const std::string& path, Parameter& p) {
      if (fits_path(pattern, path)) found = p.frozen = true;
    });
    if (!found) fail("freeze: '{}' fits no parameter{}", {one_line(pattern), nearest_note(one_line(pattern), beginnings(model))});
  }
  if (model.trained_parameters().empty()) fail("freeze: no parameter is left to train");
}

}  // namespace ricci::apps
