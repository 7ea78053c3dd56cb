// The result of a program of the lab: a table with notes below it for the terminal, JSON, and a drawing or a page (page.cpp). Columns are
// declared once (apps/terminal/table.h), and give text, JSON and chart.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/drawing/svg.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/table.h"

namespace ricci::apps {

using Drawing = std::function<std::string(Theme theme, bool with_style)>;  // as to_svg of a chart

// Texts to be read beside each other, each with its name.
struct Passage {
  std::string heading;
  std::vector<std::pair<std::string, std::string>> texts;
};

struct Report {
  std::string title = {};  // what was looked at, in a line
  ResultTable table = {};
  std::vector<std::string> notes = {};  // what a reader should know of the numbers, a line each
  std::vector<Passage> passages = {};
  Json json = {};  // the rows of the table if it is null
  // At most one of these two. Without one there is no drawing, and the page has only the table.
  std::optional<Chart> chart = {};
  Drawing drawing = {};
};

struct ReportOptions {
  std::string json;  // a file; -: stdout, in place of the table; no JSON if it is empty
  std::string out;   // .svg or .html; empty without a picture
  std::string theme = "auto";
};

// --output and --theme. add_json_flag: --json, to stdout; add_json_file: --json FILE.
void add_output_options(CLI::App& app, ReportOptions& options, const char* help);
void add_json_flag(CLI::App& app, ReportOptions& options);
void add_json_file(CLI::App& app, ReportOptions& options);

// Checks the names of files before anything is computed. `draws`: there is a drawing. Errors: a name with another ending, a folder that is
// not there, an unknown theme.
void check(const ReportOptions& options, bool draws = true);

// Title, table, notes and passages, in lines of at most 80 columns. Ends without a line end.
std::string text_of(const Report& report);
// The JSON of the report, or of its rows where it has none.
std::string json_of(const Report& report);
// Prints the text or the JSON, and writes the files.
void tell(const Report& report, const ReportOptions& options);
// Writes the drawing or the page alone.
void draw(const Report& report, const std::string& file, const std::string& theme);

// The reports of several runs as one, without drawings: the tables under each other, after a column with the names of the runs. JSON is a
// list. A single report stays as it is.
Report stacked(const std::string& title, const std::vector<std::pair<std::string, Report>>& runs);

// A page that needs no other file: the chart with values under the pointer, or the drawing; the table; notes and passages. A page with
// `reload` is loaded anew by the browser after that many seconds.
std::string page_of(const Report& report, Theme theme, int reload = 0);
// A page of headings, sentences, tables and drawings, well-formed as XML too. `body` is the HTML below the title.
std::string text_page(const std::string& title, const std::string& body, Theme theme, int reload = 0);

// A curve for each value of the column `curves`, in the order of the table, in a panel for each column that is drawn, over the column `x`;
// both are named by their headings. Values that are not above 0 are left out: both axes are logarithmic.
Chart chart_of(const Report& report, const std::string& curves, const std::string& x, const std::string& x_name);

}  // namespace ricci::apps
