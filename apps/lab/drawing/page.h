// A chart as one page that needs nothing else: the drawing, values under the pointer, a table of the runs.
#pragma once
#include <string>
#include <vector>

#include "apps/lab/drawing/svg.h"

namespace ricci::apps {

// table: rows of cells, the first is the header. notes: sentences that stand below it.
std::string to_page(
    const Chart& chart, const std::vector<std::vector<std::string>>& table, Theme theme, const std::vector<std::string>& notes = {});

}  // namespace ricci::apps
