// A table of numbers as coloured cells.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/lab/drawing/png.h"
#include "apps/lab/drawing/svg.h"

namespace ricci::apps {

struct HeatMap {
  std::string title, row_name, column_name;
  std::vector<std::string> row_labels, column_labels;  // empty: they are counted from 0
  int64_t columns = 0;
  std::vector<double> values;  // row by row

  int64_t rows() const { return columns ? static_cast<int64_t>(values.size()) / columns : 0; }
};

// What a picture shows of a large table: at most kMaxCells rows and columns, each cell being the number of largest magnitude of a
// block of `block` x `block`. A table that is not larger is itself.
constexpr int64_t kMaxCells = 256;
struct Shrunk {
  HeatMap map;
  int64_t block = 1;
};
Shrunk shrunk(const HeatMap& map);

// From the least to the greatest value that is finite, 0 included. 0 is white; values above it go to dark blue, those below it to dark
// brown, as far on the way as the square root of their share of the largest magnitude: small values can be told apart.
struct ColourScale {
  double low = 0, high = 0;
  Colour at(double value) const;  // of what is not finite: grey
};
ColourScale scale_of(const std::vector<double>& values);

// The drawing, shrunk where it is larger; with_style as in to_svg of a chart.
std::string to_svg(const HeatMap& map, Theme theme, bool with_style = true);

}  // namespace ricci::apps
