#include "apps/lab/drawing/text_page.h"

namespace ricci::apps {
namespace {

constexpr const char* kStyle = R"(
body{margin:0;background:var(--background);color:var(--ink);font:14px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',Arial,sans-serif}
main{max-width:1500px;margin:0 auto;padding:16px 28px 40px}
h2{border-top:1px solid var(--grid);padding-top:14px}
.row{display:flex;flex-wrap:wrap;gap:18px;align-items:flex-start}
figure{margin:0;max-width:100%;overflow-x:auto} figure.wide{flex-basis:100%}
figcaption,.muted{color:var(--muted)} figcaption{font-size:12.5px;max-width:640px;margin:2px 14px 10px}
svg{display:block;max-width:100%;height:auto}
pre{white-space:pre-wrap;background:var(--grid);padding:10px 14px;border-radius:6px}
table{border-collapse:collapse;margin:8px 0 20px;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:4px 14px 4px 0;border-bottom:1px solid var(--grid)} th{color:var(--muted);font-weight:600}
)";

}  // namespace

std::string text_page(const std::string& title, const std::string& body, Theme theme) {
  return "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta "
         "name=\"viewport\" content=\"width=device-width\"/>\n<title>" +
         escaped(title) + "</title>\n<style>" + kStyle + style_of(theme) + "</style>\n</head>\n<body>\n<main>\n<h1>" + escaped(title) +
         "</h1>\n" + body + "</main>\n</body>\n</html>\n";
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<table>\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    html += "<tr>";
    for (const std::string& cell : rows[i]) html += (i ? "<td>" : "<th>") + escaped(cell) + (i ? "</td>" : "</th>");
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

}  // namespace ricci::apps
