// Pages of HTML that need nothing else.
#include "apps/lab/report/report.h"

namespace ricci::apps {
namespace {

constexpr const char* kStyle = R"(
body{margin:0;background:var(--background);color:var(--ink);font:14px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',Arial,sans-serif}
h2,h3{font-size:15px;margin:22px 0 4px} h3{font-size:13px;color:var(--muted);margin:8px 0 4px}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--grid);padding:10px 14px;border-radius:6px;margin:0}
.texts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(280px,100%),1fr));gap:0 18px}
section{margin:0 28px}
)";
constexpr const char* kChartStyle = R"(main{max-width:1400px;margin:0 auto;padding:16px;position:relative}
svg{display:block;width:100%;height:auto;touch-action:pan-y}
button{position:absolute;right:44px;top:34px;font:inherit;font-size:13px;color:var(--muted);background:none;border:1px solid var(--grid);border-radius:6px;padding:3px 10px;cursor:pointer}
button:hover{color:var(--ink);border-color:var(--muted)}
#values{position:fixed;display:none;pointer-events:none;background:var(--background);border:1px solid var(--grid);border-radius:8px;padding:8px 12px;box-shadow:0 4px 18px rgba(0,0,0,.18);font-size:13px;font-variant-numeric:tabular-nums;white-space:nowrap}
#values td{padding:1px 0 1px 10px}#values td+td{text-align:right;padding-left:16px}#values i{display:inline-block;width:10px;height:10px;border-radius:5px;margin-right:7px}
.muted{color:var(--muted)}
.wide table{border-collapse:collapse;margin:8px 28px 28px;font-variant-numeric:tabular-nums}
.wide th{font-weight:600;color:var(--muted);text-align:right;padding:6px 0 6px 28px;border-bottom:1px solid var(--muted)}
.wide td{text-align:right;padding:6px 0 6px 28px;border-bottom:1px solid var(--grid);white-space:nowrap}
.wide .left,.wide th:first-child,.wide td:first-child{text-align:left} .wide th:first-child,.wide td:first-child{padding-left:0}
.wide{overflow-x:auto;background:linear-gradient(to right,var(--background) 40%,transparent),linear-gradient(to left,var(--background) 40%,transparent) 100% 0,linear-gradient(to right,var(--grid),transparent),linear-gradient(to left,var(--grid),transparent) 100% 0;background-repeat:no-repeat;background-size:60px 100%,60px 100%,24px 100%,24px 100%;background-attachment:local,local,scroll,scroll}
.phone{display:none}
p{margin:6px 28px}
@media (max-width:700px){main{padding:8px 0} .page{display:none} .phone{display:block} .wide table{margin:8px} p{margin:6px 10px} section{margin:0 10px} button{position:static;margin:4px 8px}}
)";
constexpr const char* kTextStyle = R"(main{max-width:1500px;margin:0 auto;padding:16px 28px 40px}
h2{border-top:1px solid var(--grid);padding-top:14px}
.row{display:flex;flex-wrap:wrap;gap:18px;align-items:flex-start}
figure{margin:0;max-width:100%;overflow-x:auto} figure.wide{flex-basis:100%}
figcaption,.muted{color:var(--muted)} figcaption{font-size:12.5px;width:0;min-width:100%;box-sizing:border-box;padding:2px 14px 10px}
svg{display:block;max-width:100%;height:auto}
table{border-collapse:collapse;margin:8px 0 20px;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:4px 14px 4px 0;border-bottom:1px solid var(--grid)} th{color:var(--muted);font-weight:600}
)";

// Finds the nearest point of every curve and shows its value. Points are [x, y] or [x, smoothed, measured].
constexpr const char* kScript = R"(
const chart = JSON.parse(document.getElementById('chart').textContent);
const drawings = [...document.querySelectorAll('svg')], values = document.getElementById('values'), root = document.documentElement;
const make = (name, attributes, parent) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
};
const marks = drawings.map(svg => make('g', {'pointer-events': 'none'}, svg));
const share = (axis, value) => axis.log ? Math.log(value / axis.low) / Math.log(axis.high / axis.low) : (value - axis.low) / (axis.high - axis.low);
const left = (box, x) => box.left + box.width * share(box.x, x), top_ = (box, y) => box.top + box.height * (1 - Math.min(Math.max(share(box.y, y), 0), 1));
const show = value => {
  const size = Math.abs(value);
  return size && (size < 1e-3 || size >= 1e15) ? value.toExponential(3) : value.toLocaleString('en-US', {maximumSignificantDigits: size >= 1e5 ? 15 : 5, maximumFractionDigits: 5});
};
const nearest = (box, points, x) => {
  let low = 0, high = points.length - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; left(box, points[middle][0]) < x ? low = middle : high = middle; }
  return Math.abs(left(box, points[low][0]) - x) <= Math.abs(left(box, points[high][0]) - x) ? points[low] : points[high];
};
const cell = (row, text, name) => { const td = row.insertCell(); td.textContent = text; if (name) td.className = name; return td; };
function hide() { for (const each of marks) each.replaceChildren(); values.style.display = 'none'; }
function fill(panel, found, at) {
  const table = document.createElement('table'), head = table.insertRow();
  cell(head, panel.x_name, 'muted'); cell(head, show(x));
  if (found.some(([, point]) => point.length > 2)) cell(head, 'measured', 'muted');
  for (const [curve, point] of found) {
    const row = table.insertRow(), swatch = document.createElement('i');
    swatch.className = 'f' + curve.colour;
    cell(row, curve.name).prepend(swatch); cell(row, show(point[1]));
    if (point.length > 2) cell(row, show(point[2]), 'muted');
  }
  values.replaceChildren(table);
}
function move(event) {
  const svg = event.currentTarget, i = drawings.indexOf(svg), panels = chart.panels.map(panel => ({...panel, ...panel.boxes[i]}));
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const panel = panels.find(p => point.x >= p.left - 8 && point.x <= p.left + p.width + 8 && point.y >= p.top && point.y <= p.top + p.height);
  if (!panel) return hide();
  const found = panel.curves.map(curve => [curve, nearest(panel, curve.points, point.x)]);
  const at = found.map(([, p]) => p[0]).reduce((a, b) => Math.abs(left(panel, a) - point.x) <= Math.abs(left(panel, b) - point.x) ? a : b);
  const near = found.filter(([curve, p]) => Math.abs(left(panel, p[0]) - left(panel, at)) < 12);
  marks[i].replaceChildren();
  for (const box of panels.filter(p => p.x_name === panel.x_name)) make('line', {x1: left(box, at), x2: left(box, at), y1: box.top, y2: box.top + box.height, class: 'axis'}, marks[i]);
  for (const [curve, p] of near) make('circle', {cx: left(panel, p[0]), cy: top_(panel, p[1]), r: 4.5, class: 'f' + curve.colour}, marks[i]);
  fill(panel, near, at);
  values.style.display = 'block';
  const box = values.getBoundingClientRect(), beyond = event.clientX + 18 + box.width > innerWidth;
  values.style.left = Math.max(4, beyond ? event.clientX - 18 - box.width : event.clientX + 18) + 'px';
  values.style.top = Math.max(4, Math.min(event.clientY - box.height / 2, innerHeight - box.height - 4)) + 'px';
}
for (const svg of drawings) {
  svg.addEventListener('pointermove', move);
  svg.addEventListener('pointerdown', move);
  svg.addEventListener('pointerleave', hide);
}
const is_dark = () => (root.dataset.theme || (chart.theme === 'auto' ? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light') : chart.theme)) === 'dark';
if (sessionStorage.theme) root.dataset.theme = sessionStorage.theme;
document.querySelector('button').addEventListener('click', () => root.dataset.theme = sessionStorage.theme = is_dark() ? 'light' : 'dark');
)";

Json points_of(const Curve& curve, int columns) {
  Json points = Json::array();
  size_t i = 0;
  for (const Point& p : thinned(curve.points, columns)) {
    points.push_back(Json::array({p.x, p.y}));
    if (curve.raw.empty()) continue;
    // The smoothed curve decides which points stay; the measured value goes with each.
    while (curve.points[i].x != p.x || curve.points[i].y != p.y) ++i;
    points.back().push_back(curve.raw[curve.raw_before + i].y);
  }
  return points;
}

Json json_of(const Axis& axis) { return {{"low", axis.low}, {"high", axis.high}, {"log", axis.log}}; }

// The place of a panel in each drawing, and its axes, which are the same in both.
Json json_of(const Panel& panel, const std::vector<PanelBox>& boxes, const std::string& x_name) {
  const PanelBox& box = boxes[0];
  const auto as_object = [&](const Curve& curve) {
    return Json{{"name", curve.name}, {"colour", curve.colour % kColours}, {"points", points_of(curve, static_cast<int>(box.width))}};
  };
  const auto place = [](const PanelBox& each) {
    return Json{{"left", each.left}, {"top", each.top}, {"width", each.width}, {"height", each.height}};
  };
  return {{"boxes", values_of(boxes, place)}, {"x", json_of(box.x)}, {"y", json_of(box.y)}, {"x_name", x_name},
      {"curves", values_of(panel.curves, as_object)}};
}

// JSON inside of HTML: no text may end its element.
std::string embedded(const Json& value) {
  std::string result;
  for (const char c : to_text(value)) result += c == '<' ? "\\u003c" : std::string(1, c);
  return result;
}

// A page, well-formed as XML too where its body is.
std::string page(const std::string& title, const std::string& style, const std::string& body, Theme theme, int reload) {
  const std::string refresh = reload ? "<meta http-equiv=\"refresh\" content=\"" + std::to_string(reload) + "\"/>\n" : "";
  return "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta "
         "name=\"viewport\" content=\"width=device-width\"/>\n" +
         refresh + "<title>" + escaped(title) + "</title>\n<style>" + kStyle + style + style_of(theme) +
         "</style>\n</head>\n<body>\n<main>\n" + body + "</body>\n</html>\n";
}

// The first column needs no class: names are always to the left.
std::string html_table(const ResultTable& table) {
  std::string html = "<table>\n";
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
  return html + "</table>\n";
}

std::string html_notes(const std::vector<std::string>& notes) {
  std::string html;
  for (const std::string& note : notes) html += "<p class=\"muted\">" + escaped(note) + "</p>\n";
  return html;
}

std::string escaped_lines(const std::string& text) {
  std::string html;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    html += (at ? "\n" : "") + escaped(std::string_view(text).substr(at, end - at));
    at = end + 1;
  }
  return html;
}

std::string html_passages(const std::vector<Passage>& passages) {
  std::string html;
  for (const Passage& passage : passages) {
    html += "<section><h2>" + escaped(passage.heading) + "</h2>\n<div class=\"texts\">\n";
    for (const auto& [name, words] : passage.texts)
      html += "<div><h3>" + escaped(name) + "</h3><pre>" + escaped_lines(words) + "</pre></div>\n";
    html += "</div></section>\n";
  }
  return html;
}

}  // namespace

std::string page_of(const Report& report, Theme theme, int reload) {
  const std::string table = html_table(report.table), notes = html_notes(report.notes) + html_passages(report.passages);
  if (!report.chart) {
    const std::string figure = report.drawing ? "<figure class=\"wide\">\n" + report.drawing(theme, false) + "</figure>\n" : "";
    return text_page(report.title, figure + table + notes, theme, reload);
  }
  const Chart& chart = *report.chart;
  Json panels = Json::array();
  const Layout on_page = layout_of(chart), on_phone = layout_of(chart, Screen::phone);
  for (size_t i = 0; i < chart.panels.size(); ++i)
    panels.push_back(json_of(chart.panels[i], {on_page.boxes[i], on_phone.boxes[i]}, x_name_of(chart.panels[i], chart)));
  return page(chart.title, kChartStyle,
      "<button>light / dark</button>\n<div class=\"page\">" + to_svg(chart, theme, false) + "</div>\n<div class=\"phone\">" +
          to_svg(chart, theme, false, Screen::phone) + "</div>\n<div class=\"wide\">" + table + "</div>\n" + notes +
          "</main>\n<div id=\"values\"></div>\n<script type=\"application/json\" id=\"chart\">" +
          embedded({{"theme", name_of(theme)}, {"panels", panels}}) + "</script>\n<script>" + kScript + "</script>\n",
      theme, reload);
}

std::string text_page(const std::string& title, const std::string& body, Theme theme, int reload) {
  return page(title, kTextStyle, "<h1>" + escaped(title) + "</h1>\n" + body + "</main>\n", theme, reload);
}

}  // namespace ricci::apps
