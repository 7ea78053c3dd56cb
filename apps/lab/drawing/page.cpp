#include "apps/lab/drawing/page.h"

#include <nlohmann/json.hpp>

namespace ricci::apps {
namespace {

using nlohmann::json;

constexpr const char* kStyle = R"(
body{margin:0;background:var(--background);color:var(--ink);font:14px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',Arial,sans-serif}
main{max-width:1180px;margin:0 auto;padding:16px;position:relative}
svg{display:block;width:100%;height:auto;touch-action:pan-y}
button{position:absolute;right:44px;top:34px;font:inherit;font-size:13px;color:var(--muted);background:none;border:1px solid var(--grid);border-radius:6px;padding:3px 10px;cursor:pointer}
button:hover{color:var(--ink);border-color:var(--muted)}
#values{position:fixed;display:none;pointer-events:none;background:var(--background);border:1px solid var(--grid);border-radius:8px;padding:8px 12px;box-shadow:0 4px 18px rgba(0,0,0,.18);font-size:13px;font-variant-numeric:tabular-nums;white-space:nowrap}
#values td{padding:1px 0 1px 10px}#values td+td{text-align:right;padding-left:16px}#values i{display:inline-block;width:10px;height:10px;border-radius:5px;margin-right:7px}
.faint{color:var(--muted)}
.runs{border-collapse:collapse;margin:8px 28px 28px;font-variant-numeric:tabular-nums}
.runs th{font-weight:600;color:var(--muted);text-align:right;padding:6px 0 6px 28px;border-bottom:1px solid var(--muted)}
.runs td{text-align:right;padding:6px 0 6px 28px;border-bottom:1px solid var(--grid)}
.runs th:first-child,.runs td:first-child{text-align:left;padding-left:0}
.wide{overflow-x:auto}
p{margin:6px 28px}
)";

// Finds the nearest point of every curve and tells its value. Points are [x, y] or [x, smoothed, measured].
constexpr const char* kScript = R"(
const chart = JSON.parse(document.getElementById('chart').textContent);
const svg = document.querySelector('svg'), values = document.getElementById('values'), root = document.documentElement;
const make = (name, attributes, parent) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
};
const marks = make('g', {'pointer-events': 'none'}, svg);
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
function hide() { marks.replaceChildren(); values.style.display = 'none'; }
function fill(panel, found, at) {
  const table = document.createElement('table'), head = table.insertRow();
  cell(head, panel.x_name, 'faint'); cell(head, show(at));
  if (found.some(([, point]) => point.length > 2)) cell(head, 'measured', 'faint');
  for (const [curve, point] of found) {
    const row = table.insertRow(), swatch = document.createElement('i');
    swatch.className = 'f' + curve.colour;
    cell(row, curve.name).prepend(swatch); cell(row, show(point[1]));
    if (point.length > 2) cell(row, show(point[2]), 'faint');
  }
  values.replaceChildren(table);
}
function move(event) {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const panel = chart.panels.find(p => point.x >= p.left - 8 && point.x <= p.left + p.width + 8 && point.y >= p.top && point.y <= p.top + p.height);
  if (!panel) return hide();
  const found = panel.curves.map(curve => [curve, nearest(panel, curve.points, point.x)]);
  const at = found.map(([, p]) => p[0]).reduce((a, b) => Math.abs(left(panel, a) - point.x) <= Math.abs(left(panel, b) - point.x) ? a : b);
  const near = found.filter(([curve, p]) => Math.abs(left(panel, p[0]) - left(panel, at)) < 12);
  marks.replaceChildren();
  for (const box of chart.panels.filter(p => p.x_name === panel.x_name)) make('line', {x1: left(box, at), x2: left(box, at), y1: box.top, y2: box.top + box.height, class: 'axis'}, marks);
  for (const [curve, p] of near) make('circle', {cx: left(panel, p[0]), cy: top_(panel, p[1]), r: 4.5, class: 'f' + curve.colour}, marks);
  fill(panel, near, at);
  values.style.display = 'block';
  const box = values.getBoundingClientRect(), beyond = event.clientX + 18 + box.width > innerWidth;
  values.style.left = Math.max(4, beyond ? event.clientX - 18 - box.width : event.clientX + 18) + 'px';
  values.style.top = Math.max(4, Math.min(event.clientY - box.height / 2, innerHeight - box.height - 4)) + 'px';
}
svg.addEventListener('pointermove', move);
svg.addEventListener('pointerdown', move);
svg.addEventListener('pointerleave', hide);
const is_dark = () => (root.dataset.theme || (chart.theme === 'auto' ? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light') : chart.theme)) === 'dark';
document.querySelector('button').addEventListener('click', () => root.dataset.theme = is_dark() ? 'light' : 'dark');
)";

json points_of(const Curve& curve, int columns) {
  json points = json::array();
  if (curve.raw.empty()) {
    for (const Point& p : thinned(curve.points, columns)) points.push_back({p.x, p.y});
    return points;
  }
  // The smoothed curve decides which points stay; the measured value goes with each.
  size_t at = 0;
  for (const Point& p : thinned(curve.points, columns)) {
    while (curve.points[at].x != p.x || curve.points[at].y != p.y) ++at;
    points.push_back({p.x, p.y, curve.raw[curve.raw_before + at].y});
  }
  return points;
}

json to_json(const Axis& axis) { return {{"low", axis.low}, {"high", axis.high}, {"log", axis.log}}; }

json to_json(const Panel& panel, const PanelBox& box, const std::string& x_name) {
  json curves = json::array();
  for (const Curve& curve : panel.curves)
    curves.push_back(
        {{"name", curve.name}, {"colour", curve.colour % kColours}, {"points", points_of(curve, static_cast<int>(box.width))}});
  return {{"left", box.left}, {"top", box.top}, {"width", box.width}, {"height", box.height}, {"x", to_json(box.x)}, {"y", to_json(box.y)},
      {"x_name", x_name}, {"curves", std::move(curves)}};
}

// JSON inside of HTML: no text may end the element it stands in. Bytes that are no UTF-8 become U+FFFD.
std::string embedded(const json& value) {
  std::string result;
  for (const char c : value.dump(-1, ' ', false, json::error_handler_t::replace))
    if (c == '<') result += "\\u003c";
    else result += c;
  return result;
}

std::string table_rows(const std::vector<std::vector<std::string>>& table) {
  std::string html;
  for (size_t i = 0; i < table.size(); ++i) {
    html += "<tr>";
    for (const std::string& cell : table[i]) html += (i ? "<td>" : "<th>") + escaped(cell) + (i ? "</td>" : "</th>");
    html += "</tr>\n";
  }
  return html;
}

}  // namespace

std::string to_page(
    const Chart& chart, const std::vector<std::vector<std::string>>& table, Theme theme, const std::vector<std::string>& notes) {
  json data = {{"theme", theme == Theme::automatic ? "auto" : theme == Theme::dark ? "dark" : "light"}, {"panels", json::array()}};
  const Layout layout = layout_of(chart);
  for (size_t i = 0; i < chart.panels.size(); ++i)
    data["panels"].push_back(to_json(chart.panels[i], layout.boxes[i], x_name_of(chart.panels[i], chart)));
  std::string sentences;
  for (const std::string& note : notes) sentences += "<p class=\"faint\">" + escaped(note) + "</p>\n";
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
         "content=\"width=device-width\">\n<title>" +
         escaped(chart.title) + "</title>\n<style>" + kStyle + style_of(theme) +
         "</style>\n</head>\n<body>\n<main>\n<button>light / dark</button>\n" + to_svg(chart, theme, false) +
         "<div class=\"wide\"><table class=\"runs\">\n" + table_rows(table) + "</table></div>\n" + sentences +
         "</main>\n<div id=\"values\"></div>\n" + "<script type=\"application/json\" id=\"chart\">" + embedded(data) +
         "</script>\n<script>" + kScript + "</script>\n</body>\n</html>\n";
}

}  // namespace ricci::apps
