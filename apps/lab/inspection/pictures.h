// What was found as drawings, each with a sentence that says what it shows.
#pragma once
#include <functional>
#include <string>

#include "apps/lab/drawing/svg.h"
#include "apps/lab/inspection/found.h"

namespace ricci::apps {

struct Picture {
  std::string name;  // of its file, without .svg
  std::string sentence;
  int64_t layer = 0;
  std::function<std::string(Theme theme, bool with_style)> svg;  // as to_svg of a chart
};

// In the order of layers, and within a layer of kinds: scores, coefficients, matrices, spectrum, distances. They refer to `found`.
std::vector<Picture> pictures_of(const Found& found);

}  // namespace ricci::apps
