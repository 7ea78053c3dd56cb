// Draws a table of numbers as coloured cells.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/lab/chart/chart.h"

namespace ricci::apps {

struct HeatMap {
  std::string title, row_name, column_name;
  std::vector<std::string> row_labels, column_labels;  // by default numbers from 0
  int64_t columns = 0;
  std::vector<double> values;  // row by row
  int64_t rows() const { return columns ? static_cast<int64_t>(values.size()) / columns : 0; }
};

// A picture has at most 64 x 64 cells. In a larger map, a cell shows the largest magnitude of a block. Returns the block's side.
int64_t block_of(const HeatMap& map);
// 0 is the background, blue is above 0, orange below. Maps up to 8 x 8 have their values in the cells.
Picture picture_of(const HeatMap& map);

}  // namespace ricci::apps
