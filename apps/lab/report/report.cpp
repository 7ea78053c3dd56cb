#include "apps/lab/report/report.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

bool is_page(const std::string& name) { return name.ends_with(".html"); }

void check_folder(const std::string& name) {
  const std::string folder = std::filesystem::path(name).parent_path().string();
  if (!folder.empty() && !is_folder(folder)) fail("cannot write {}: folder {}: No such file or directory", {name, folder});
}

const Column& column_of(const ResultTable& table, const std::string& heading) {
  const auto found = std::find_if(table.columns.begin(), table.columns.end(), [&](const Column& c) { return c.heading == heading; });
  if (found == table.columns.end()) fail("chart: no column has the heading {}", {heading});
  return *found;
}

std::vector<Point> points_of(const Column& names, const std::string& name, const Column& x, const Column& y) {
  std::vector<Point> points;
  for (size_t i = 0; i < names.values.size(); ++i) {
    const Point point{number_of(x.values[i]) * x.factor, number_of(y.values[i]) * y.factor};
    if (text_of(names, i) == name && point.x > 0 && point.y > 0) points.push_back(point);
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  return points;
}

}  // namespace

void add_output_options(CLI::App& app, ReportOptions& options, const char* help) {
  app.add_option("-o,--output,--out", options.out, help)->capture_default_str();
  app.add_option("--theme", options.theme, "auto (as the reader's system is set), light or dark")->capture_default_str();
}

void add_json_flag(CLI::App& app, ReportOptions& options) {
  app.add_flag_callback(
      "--json", [&options] { options.json = "-"; }, "Print JSON");
}

void add_json_file(CLI::App& app, ReportOptions& options) {
  app.add_option("--json", options.json, "Write JSON to this file; -: to stdout, in place of the table");
}

void check(const ReportOptions& options, bool draws) {
  parse_theme(options.theme);
  if (!options.json.empty() && options.json != "-") check_folder(options.json);
  if (options.out.empty()) return;
  const bool is_png = draws && options.out.ends_with(".png");
  if (!is_page(options.out) && !(draws && options.out.ends_with(".svg")))
    fail("{}: expected a name that ends in {}{}", {options.out, draws ? ".svg or .html" : ".html: there is a page, but no drawing",
                                                      is_png ? "; rsvg-convert --zoom 2 turns an SVG into a PNG" : ""});
  check_folder(options.out);
}

std::string text_of(const Report& report) {
  std::string text = wrapped(report.title, 2) + text_of(report.table) + "\n";
  for (const std::string& note : report.notes) text += wrapped(note, 2);
  text.pop_back();
  for (const Passage& passage : report.passages) {
    text += "\n\n" + passage.heading;
    for (const auto& [name, words] : passage.texts) text += "\n--- " + name + "\n" + words;
  }
  return text;
}

Report stacked(const std::string& title, const std::vector<std::pair<std::string, Report>>& runs) {
  if (runs.size() == 1) return runs[0].second;
  Report all{.title = title};
  Json json = Json::array();
  for (const auto& [name, report] : runs) {
    ResultTable table = report.table;
    Column names{.heading = "run", .left = true, .missing = "", .values = std::vector<Json>(table.rows())};
    if (!names.values.empty()) names.values[0] = name;
    table.columns.insert(table.columns.begin(), names);
    for (size_t i = 0; i < all.table.columns.size(); ++i) {
      std::vector<Json>& above = all.table.columns[i].values;
      above.insert(above.end(), table.columns[i].values.begin(), table.columns[i].values.end());
    }
    if (all.table.columns.empty()) all.table = table;
    for (const std::string& note : report.notes) {
      const auto has_it = [&](const auto& run) {
        return std::find(run.second.notes.begin(), run.second.notes.end(), note) != run.second.notes.end();
      };
      const std::string line = std::all_of(runs.begin(), runs.end(), has_it) ? note : name + ": " + note;
      if (std::find(all.notes.begin(), all.notes.end(), line) == all.notes.end()) all.notes.push_back(line);
    }
    json.push_back(report.json);
  }
  all.json = json;
  return all;
}

std::string json_of(const Report& report) { return to_text(report.json.is_null() ? json_of(report.table) : report.json, 1); }

void tell(const Report& report, const ReportOptions& options) {
  print(options.json == "-" ? json_of(report) : text_of(report));
  if (!options.json.empty() && options.json != "-") write_atomically(options.json, json_of(report) + "\n");
  if (!options.out.empty()) draw(report, options.out, options.theme);
}

void draw(const Report& report, const std::string& file, const std::string& theme_name) {
  const Theme theme = parse_theme(theme_name);
  if (is_page(file)) {
    write_atomically(file, page_of(report, theme));
    return;
  }
  if (!report.chart && !report.drawing) fail("{}: not written, as nothing that was found can be drawn", {file});
  write_atomically(file, report.chart ? to_svg(*report.chart, theme) : report.drawing(theme, true));
}

Chart chart_of(const Report& report, const std::string& curves, const std::string& x, const std::string& x_name) {
  Chart chart{.title = report.title, .x_name = x_name, .log_x = true, .log_y = true, .given_x = true};
  const Column& names = column_of(report.table, curves);
  std::vector<const Column*> drawn;
  for (const Column& column : report.table.columns) {
    if (column.panel.empty()) continue;
    drawn.push_back(&column);
    chart.panels.push_back({column.panel, column.unit});
  }
  std::vector<std::string> known;
  for (size_t i = 0; i < names.values.size(); ++i) {
    const std::string name = text_of(names, i);
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    known.push_back(name);
    std::vector<std::vector<Point>> points;
    for (const Column* const y : drawn) points.push_back(points_of(names, name, column_of(report.table, x), *y));
    add_curves(chart, name, points);
  }
  return chart;
}

}  // namespace ricci::apps
