// A chart as one page that needs nothing else: the drawing, values under the pointer, a table of the runs.
#pragma once
#include <string>
#include <vector>

#include "apps/plot/svg.h"

namespace ricci::apps {

// table: rows of cells, the first is the header.
std::string to_page(const Chart& chart, const std::vector<std::vector<std::string>>& table, Theme theme);

}  // namespace ricci::apps
