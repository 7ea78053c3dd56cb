// Draws a table of numbers as coloured cells.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/lab/chart/chart.h"

namespace ricci::apps {

struct HeatMap {
  std::string title, row_name, column_name;
  std::vector<std::string> row_labels, column_labels;  // by default the indices
  int64_t columns = 0;
  std::vector<double> values;  // row by row
  int64_t rows() const { return columns ? static_cast<int64_t>(values.size()) / columns : 0; }
};

// Returns the side of a block. A picture has at most 64 x 64 cells, so a cell of a larger map shows the number with the largest magnitude
// in a block.
int64_t block_of(const HeatMap& map);
// Draws 0 in the background colour, values above 0 in blue and values below 0 in orange. Maps up to 8 x 8 show the values in their cells.
Picture picture_of(const HeatMap& map);

}  // namespace ricci::apps
