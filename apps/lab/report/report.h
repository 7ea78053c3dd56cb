// The result of a program of the lab, and its four writers: text of at most 80 columns, JSON, SVG, and a page that needs no other file.
#pragma once
#include <string>
#include <vector>

#include "apps/lab/chart/chart.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/table.h"

namespace ricci::apps {

struct Report {
  std::string title = {};  // what was looked at, in a line
  ResultTable table = {};
  std::vector<std::string> notes = {};  // what a reader should know of the numbers, a line each
  Json json = {};                       // the rows of the table if it is null
  std::vector<Picture> pictures = {};   // without one there is no SVG, and the page has only the tables

  void add(const Chart& chart);  // its pictures
};

struct ReportOptions {
  std::string json;  // a file; -: stdout, in place of the table; no JSON if it is empty
  std::string out;   // .svg or .html; empty without a picture
};

// --output. add_json_flag: --json, to stdout; add_json_file: --json FILE.
void add_output_option(CLI::App& app, ReportOptions& options, const char* help);
void add_json_flag(CLI::App& app, ReportOptions& options);
void add_json_file(CLI::App& app, ReportOptions& options);

// Checks the names of files before anything is computed. `draws`: there is a picture. Errors: a name with another ending, a folder that
// does not exist.
void check(const ReportOptions& options, bool draws = true);

// Title, table and notes, in lines of at most 80 columns. Ends without a line end.
std::string text_of(const Report& report);
// The JSON of the report, or of its rows if it has none.
std::string json_of(const Report& report);
// The file that a name asks for: a page if it ends in .html, else SVG. Error: no picture.
void draw(const Report& report, const std::string& file);
// Prints the text or the JSON, and writes the files.
void tell(const Report& report, const ReportOptions& options);

// A whole SVG file: the title, and the pictures group by group in rows, two charts wide. It is never wider than the window.
std::string to_svg(const std::string& title, const std::vector<Picture>& pictures);
// A page that needs no other file, well-formed as XML too: pictures with their captions, group by group; the table, and notes. The browser
// loads a page with `reload` again after that many seconds.
std::string page_of(const Report& report, int reload = 0);

}  // namespace ricci::apps
