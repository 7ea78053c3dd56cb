// A table of numbers as coloured cells: a picture inside of a drawing.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/lab/drawing/svg.h"

namespace ricci::apps {

using Colour = std::array<uint8_t, 3>;  // red, green, blue

// A picture as the bytes of a PNG file; pixels row by row, width of them in each.
std::string to_png(int64_t width, const std::vector<Colour>& pixels);

// The same as the address of an <image>: data:image/png;base64,...
std::string to_data_address(const std::string& png);

struct HeatMap {
  std::string title, row_name, column_name;
  std::vector<std::string> row_labels, column_labels;  // if empty, they are counted from 0
  int64_t columns = 0;
  std::vector<double> values;  // row by row
  int64_t block = 1;           // each cell shows a block of `block` x `block` numbers

  int64_t rows() const { return columns ? static_cast<int64_t>(values.size()) / columns : 0; }
};

// A large table as a picture shows it: at most 256 rows and columns, each cell being the number of largest magnitude of its block. A
// smaller table is returned as it is.
HeatMap shrunk(HeatMap map);

// From the least to the greatest value that is finite, 0 included. 0 is white; values above it go to dark blue, values below it to dark
// brown, as far on the way as the square root of their share of the largest magnitude: small values can be distinguished.
struct ColourScale {
  double low = 0, high = 0;
  Colour colour_of(double value) const;  // grey where the value is not finite
  // The value at a place of the legend, from 0 to 1. Colours change evenly on it, because a linear one shows none of the small values.
  double value_at(double place) const;
};
ColourScale scale_of(const std::vector<double>& values);

// The drawing, shrunk where it is larger; with_style as in to_svg of a chart.
std::string to_svg(const HeatMap& map, Theme theme, bool with_style = true);

}  // namespace ricci::apps
