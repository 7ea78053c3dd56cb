#include "apps/lab/report/report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

void check_folder(const std::string& name) {
  const std::string folder = std::filesystem::path(name).parent_path().string();
  if (!folder.empty() && !is_folder(folder)) fail("cannot write {}: folder {}: No such file or directory", {name, folder});
}

// ---- Pages
constexpr const char* kPageStyle = R"(
*{box-sizing:border-box}
body{margin:0;font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',Arial,sans-serif}
main{max-width:1240px;margin:0 auto;padding:16px 20px 40px} main.narrow{max-width:740px}
h1{font-size:20px;line-height:1.3;margin:8px 0 12px;overflow-wrap:anywhere}
h2{font-size:16px;margin:24px 0 6px}
figcaption,.note,th{color:var(--muted)} p{margin:8px 0;overflow-wrap:anywhere}
.pictures{display:flex;flex-wrap:wrap;justify-content:center;align-items:flex-start;gap:16px 24px}
figure{margin:0;min-width:0} figure svg{display:block;width:100%;height:auto;overflow:visible} figcaption{font-size:13px}
.wide{overflow-x:auto;margin:16px 0} table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:5px 0 5px 22px;text-align:right;vertical-align:top;border-bottom:1px solid var(--grid)} th{font-weight:600}
td{white-space:nowrap} td.left,td:first-child{white-space:normal;min-width:5em}
.left,th:first-child,td:first-child{text-align:left} th:first-child,td:first-child{padding-left:0}
@media (max-width:500px){main{padding:8px 12px 24px} th,td{padding-left:14px}}
)";

// Pictures share a row if they fit at about two thirds of their size. A single picture can grow.
std::string pictures_html(const std::vector<Picture>& pictures) {
  std::string html;
  const double largest = pictures.size() == 1 ? 1.25 : 1.05;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const Picture& picture = pictures[i];
    if (i == 0 || picture.group != pictures[i - 1].group) {
      html += i ? "</div>\n" : "";
      html += picture.group.empty() ? "" : "<h2>" + escaped(picture.group) + "</h2>\n";
      html += "<div class=\"pictures\">\n";
    }
    html +=
        fmt::format("<figure style=\"flex:1 1 {:.0f}px;max-width:{:.0f}px\">\n<svg viewBox=\"0 0 {:.6g} {:.6g}\" role=\"img\">\n{}</svg>\n",
            0.72 * picture.width, largest * picture.width, picture.width, picture.height, picture.elements);
    html += (picture.caption.empty() ? "" : "<figcaption>" + escaped(picture.caption) + "</figcaption>\n") + "</figure>\n";
  }
  return html.empty() ? "" : html + "</div>\n";
}

// The table in HTML. CSS aligns the first column to the left.
std::string table_html(const ResultTable& table) {
  std::string html;
  const std::vector<Cells> rows = cells_of(table);
  std::vector<const char*> classes;
  for (const Column& column : table.columns)
    if (!column.heading.empty()) classes.push_back(column.left && !classes.empty() ? " class=\"left\"" : "");
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string name = i ? "td" : "th";
    html += "<tr>";
    for (size_t j = 0; j < rows[i].size(); ++j)
      html.append("<" + name).append(classes[j]).append(">" + escaped(rows[i][j]) + "</" + name + ">");
    html += "</tr>\n";
  }
  return classes.empty() ? "" : "<div class=\"wide\"><table>\n" + html + "</table></div>\n";
}

}  // namespace

void Report::add(const Chart& chart) {
  const std::vector<Picture> added = pictures_of(chart);
  pictures.insert(pictures.end(), added.begin(), added.end());
}

void add_output_option(CLI::App& app, ReportOptions& options, const char* help) {
  app.add_option("-o,--output,--out", options.out, help)->capture_default_str();
}

void add_json_flag(CLI::App& app, ReportOptions& options) {
  app.add_flag_callback(
      "--json", [&options] { options.json = "-"; }, "Print JSON");
}

void add_json_file(CLI::App& app, ReportOptions& options) {
  app.add_option("--json", options.json, "Write JSON to this file (-: to stdout, instead of the table)");
}

void check(const ReportOptions& options, bool draws) {
  if (!options.json.empty() && options.json != "-") check_folder(options.json);
  if (options.out.empty()) return;
  const bool is_png = draws && options.out.ends_with(".png");
  if (!options.out.ends_with(".html") && !(draws && options.out.ends_with(".svg")))
    fail("{}: expected a name that ends in {}{}", {options.out, draws ? ".svg or .html" : ".html (it has no drawing)",
                                                      is_png ? "; rsvg-convert --zoom 2 turns an SVG into a PNG" : ""});
  check_folder(options.out);
}

std::string text_of(const Report& report) {
  std::string text = wrapped(report.title, 2);
  if (!report.table.columns.empty()) text += text_of(report.table) + "\n";
  for (const std::string& note : report.notes) text += wrapped(note, 2);
  text.pop_back();
  return text;
}

std::string json_of(const Report& report) { return to_text(report.json.is_null() ? json_of(report.table) : report.json, 1); }

std::string to_svg(const std::string& title, const std::vector<Picture>& pictures) {
  constexpr double kEdge = 20, kGap = 24, kRow = 1144;
  std::string svg, group;
  double x = 0, top = 56, bottom = 56, width = 0;
  for (const Picture& picture : pictures) {
    if (picture.group != group || x + picture.width > kRow) {
      x = 0;
      top = bottom;
    }
    if (picture.group != group) {
      group = picture.group;
      top += 34;
      svg += fmt::format("<text x=\"{}\" y=\"{:.6g}\" class=\"ink strong\">{}</text>\n", kEdge, top - 14, escaped(group));
    }
    svg += fmt::format("<g transform=\"translate({:.6g} {:.6g})\">\n{}</g>\n", kEdge + x, top, picture.elements);
    x += picture.width + kGap;
    width = std::max(width, x - kGap);
    bottom = std::max(bottom, top + picture.height + kGap);
  }
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.6g} {1:.6g}\" width=\"{0:.6g}\" height=\"{1:.6g}\" "
                     "style=\"max-width:100%;height:auto\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n"
                     "<rect width=\"100%\" height=\"100%\" class=\"background\"/>\n"
                     "<text x=\"{4}\" y=\"36\" class=\"ink strong title\">{5}</text>\n{6}</svg>\n",
      width + 2 * kEdge, bottom, escaped(title), picture_style(), kEdge, escaped(fitting(title, width / 1.35)), svg);
}

void draw(const Report& report, const std::string& file) {
  if (file.ends_with(".html")) return write_atomically(file, page_of(report));
  if (report.pictures.empty()) fail("{}: is not written; the result has nothing to draw", {file});
  write_atomically(file, to_svg(report.title, report.pictures));
}

void publish(const Report& report, const ReportOptions& options) {
  print(options.json == "-" ? json_of(report) : text_of(report));
  if (!options.json.empty() && options.json != "-") write_atomically(options.json, json_of(report) + "\n");
  if (!options.out.empty()) draw(report, options.out);
}

std::string page_of(const Report& report) {
  const std::string title = escaped(report.title);
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                     "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>" +
                     title + "</title>\n<style>" + picture_style() + kPageStyle + "</style>\n</head>\n<body>\n<main" +
                     (report.pictures.size() == 1 ? " class=\"narrow\"" : "") + ">\n<h1>" + title + "</h1>\n";
  page += pictures_html(report.pictures) + table_html(report.table);
  for (const std::string& note : report.notes) page += "<p class=\"note\">" + escaped(note) + "</p>\n";
  return page + "</main>\n</body>\n</html>\n";
}

}  // namespace ricci::apps
