// What an analysis found: a table for the terminal, JSON, and a drawing or a page.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/drawing/svg.h"
#include "apps/lab/plot/chart.h"
#include "apps/terminal/table.h"

namespace ricci::apps {

struct Report {
  std::string title;               // what was analysed, in a line
  std::vector<Cells> table;        // rows under a row of names
  size_t texts = 1;                // the first columns, which are texts
  std::vector<std::string> notes;  // what a reader should know of the numbers, a line each
  std::string json;
  // At most one of these two. Without one there is no drawing, and the page has only the table.
  std::optional<Chart> chart = {};
  std::function<std::string(Theme theme, bool with_style)> svg = {};  // as to_svg of a chart
  std::string page_body = {};                                         // HTML below the table on the page
};

struct ReportOptions {
  std::string json;  // a file; -: stdout, in place of the table; empty: none
  std::string out;   // .svg or .html; empty: none
  std::string theme = "auto";
};

// What is wrong with the names of files is told before anything is computed. `draws`: there is an SVG drawing.
void check(const ReportOptions& options, bool draws);

// Prints the table and the notes, and writes the files.
void tell(const Report& report, const ReportOptions& options);

}  // namespace ricci::apps
