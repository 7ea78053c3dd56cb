// What was measured, as tables for a terminal, as JSON and as charts.
#pragma once
#include <string>

#include "apps/lab/benchmark/measure.h"
#include "apps/lab/plot/chart.h"

namespace ricci::apps {

// A row per length and mixer under a row of names; ends without a line end.
std::string table_of(const Benchmark& bench);
// The same of the ops that take a thousandth of a step or more, beside the roofs. Empty without a roofline.
std::string roofline_table(const Benchmark& bench);
std::string json_of(const Benchmark& bench);

// Time, memory and FLOPs of a step against the positions of a sequence.
Chart chart_of(const Benchmark& bench);
// FLOP/s against FLOPs per byte: the roofs as a line, each op that has FLOPs as a dot.
Chart roofline_chart(const Benchmark& bench);

// The table for a page, as rows of cells.
std::vector<std::vector<std::string>> cells_of(const Benchmark& bench);

}  // namespace ricci::apps
