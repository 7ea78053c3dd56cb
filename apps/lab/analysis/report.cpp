#include "apps/lab/analysis/report.h"

#include <cstdio>
#include <filesystem>

#include "apps/lab/drawing/page.h"
#include "apps/lab/drawing/text_page.h"
#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

bool is_page(const std::string& name) { return name.ends_with(".html"); }

void check_folder(const std::string& name) {
  const std::string folder = std::filesystem::path(name).parent_path().string();
  const Folder opened(folder.empty() ? "." : folder);
}

std::string page_of(const Report& report, Theme theme) {
  if (report.chart) return to_page(*report.chart, report.table, theme, report.notes);
  std::string body = report.svg ? "<figure class=\"wide\">\n" + report.svg(theme, false) + "</figure>\n" : "";
  body += html_table(report.table);
  for (const std::string& note : report.notes) body += "<p class=\"muted\">" + escaped(note) + "</p>\n";
  return text_page(report.title, body + report.page_body, theme);
}

std::string drawing_of(const Report& report, Theme theme) { return report.chart ? to_svg(*report.chart, theme) : report.svg(theme, true); }

}  // namespace

void check(const ReportOptions& options, bool draws) {
  parse_theme(options.theme);
  if (!options.json.empty() && options.json != "-") check_folder(options.json);
  if (options.out.empty()) return;
  if (!is_page(options.out) && !(draws && options.out.ends_with(".svg")))
    fail("{}: expected a name that ends in {}", {options.out, draws ? ".svg or .html" : ".html: there is a page, but no drawing"});
  check_folder(options.out);
}

void tell(const Report& report, const ReportOptions& options) {
  if (options.json == "-") {
    std::puts(report.json.c_str());
  } else {
    std::puts(report.title.c_str());
    std::puts(aligned(report.table, report.texts).c_str());
    for (const std::string& note : report.notes) std::puts(note.c_str());
    if (!options.json.empty()) write_file_atomically(options.json, report.json + "\n");
  }
  if (options.out.empty()) return;
  const Theme theme = parse_theme(options.theme);
  write_file_atomically(options.out, is_page(options.out) ? page_of(report, theme) : drawing_of(report, theme));
}

}  // namespace ricci::apps
