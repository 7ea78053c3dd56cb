#include "apps/lab/chart/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace ricci::apps {
namespace {

// Maximum side lengths of maps, of maps with numbers, and of maps with text under the pointer.
constexpr int64_t kMaxCells = 64, kWithNumbers = 8, kWithTitles = 32;

// A map with a cell for each block: the number with the largest magnitude, or NaN if the block contains a NaN.
HeatMap shrunk(const HeatMap& map, int64_t block) {
  const auto labels = [&](const std::vector<std::string>& given, int64_t count) {
    std::vector<std::string> kept;
    for (int64_t i = 0; i < count; i += block)
      kept.push_back(given.empty() ? std::to_string(i) : fitting(given[static_cast<size_t>(i)], 100));
    return kept;
  };
  HeatMap result{
      map.title, map.row_name, map.column_name, labels(map.row_labels, map.rows()), labels(map.column_labels, map.columns), 0, {}};
  result.columns = std::ssize(result.column_labels);
  result.values.resize(result.row_labels.size() * result.column_labels.size());
  for (int64_t i = 0; i < std::ssize(map.values); ++i) {
    const int64_t row = i / map.columns / block, column = i % map.columns / block;
    double& cell = result.values[static_cast<size_t>(row * result.columns + column)];
    const double value = map.values[static_cast<size_t>(i)];
    const bool is_larger = std::isnan(value) || std::abs(value) > std::abs(cell);
    if (is_larger && !std::isnan(cell)) cell = value;
  }
  return result;
}

struct Grid {
  double left, top, width, height, largest;  // width, height: of a cell; largest: the magnitude drawn in full colour

  double x(size_t column) const { return left + (static_cast<double>(column) + 0.5) * width; }
  double y(size_t row) const { return top + (static_cast<double>(row) + 0.5) * height; }
};

// The opacity is the square root of a value's magnitude divided by the largest magnitude, so small values are visible. Cells of one colour
// form one path.
std::string draw_cells(const Grid& grid, const std::vector<double>& values, size_t columns, bool with_numbers) {
  std::map<std::string, std::string> paths;  // by their attributes
  std::string numbers;
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const size_t row = i / columns, column = i % columns;
    const double opacity = grid.largest > 0 ? std::sqrt(std::abs(value) / grid.largest) : 0;
    const std::string shade = fmt::format("class=\"{}\" fill-opacity=\"{:.2f}\"", value < 0 ? "f1" : "f0", opacity);
    if (value != 0) paths[std::isfinite(value) ? shade : "class=\"muted\""] += fmt::format("M{} {}h1v1h-1z", column, row);
    if (!with_numbers) continue;
    std::string number = fmt::format("{:.2g}", value);
    if (number.size() > 6) number = fmt::format("{:.0e}", value);
    numbers += svg_text(grid.x(column), grid.y(row) + 5, opacity > 0.65 ? "background" : "ink", kMiddle, number);
  }
  std::string svg;
  for (const auto& [attributes, path] : paths) svg += "<path d=\"" + path + "\" " + attributes + "/>\n";
  const double width = grid.width * static_cast<double>(columns), height = grid.height * static_cast<double>(values.size() / columns);
  return fmt::format("<g transform=\"translate({:.6g} {:.6g}) scale({:.6g} {:.6g})\" shape-rendering=\"crispEdges\">\n{}</g>\n", grid.left,
             grid.top, grid.width, grid.height, svg) +
         svg_rectangle(grid.left, grid.top, width, height, "class=\"axis\" fill=\"none\"") + numbers;
}

// Draws the labels of a side, or only every 2nd, 5th, 10th ... if they are too close.
std::string draw_side(const Grid& grid, const std::vector<std::string>& labels, bool is_top, bool turned, double room) {
  std::string svg;
  const double distance = is_top ? grid.width : grid.height;
  size_t every = 1;
  for (const size_t more : {2, 5, 10, 20, 50})
    if (distance * static_cast<double>(every) < room) every = more;
  for (size_t i = 0; i < labels.size(); i += every) {
    const double x = is_top ? grid.x(i) : grid.left - 6, y = is_top ? grid.top - 6 : grid.y(i) + 5;
    if (turned) svg += svg_text(x + 5, y, "muted", fmt::format(" transform=\"rotate(-90 {:.6g} {:.6g})\"", x + 5, y), labels[i]);
    else svg += svg_text(x, y, "muted", is_top ? kMiddle : kEnd, labels[i]);
  }
  return svg;
}

// Draws invisible cells above the others, with their labels and values under the pointer.
std::string draw_titles(const Grid& grid, const HeatMap& map) {
  std::string svg;
  for (size_t i = 0; i < map.values.size(); ++i) {
    const size_t row = i / map.column_labels.size(), column = i % map.column_labels.size();
    svg += fmt::format("<path d=\"M{:.6g} {:.6g}h{:.6g}v{:.6g}h{:.6g}z\" opacity=\"0\"><title>{}, {}: {:.4g}</title></path>\n",
        grid.x(column) - grid.width / 2, grid.y(row) - grid.height / 2, grid.width, grid.height, -grid.width, escaped(map.row_labels[row]),
        escaped(map.column_labels[column]), map.values[i]);
  }
  return svg;
}

// Returns five values from low to high, in even steps of opacity.
std::vector<double> shades_of(double low, double high) {
  const auto root = [](double value) { return std::copysign(std::sqrt(std::abs(value)), value); };
  std::vector<double> shades;
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const double opacity = root(low) + share * (root(high) - root(low));
    shades.push_back(std::copysign(opacity * opacity, opacity));
  }
  return shades;
}

double widest(const std::vector<std::string>& labels) {
  double width = 0;
  for (const std::string& label : labels) width = std::max(width, width_of(label));
  return width;
}

}  // namespace

int64_t block_of(const HeatMap& map) { return std::max<int64_t>(1, (std::max(map.rows(), map.columns) + kMaxCells - 1) / kMaxCells); }

Picture picture_of(const HeatMap& given) {
  constexpr double kSide = 400, kCell = 64, kLine = 16;
  const HeatMap map = shrunk(given, block_of(given));
  const int64_t most = std::max(map.rows(), map.columns);
  // Cells are squares, unless one side has many more cells.
  const auto extent = [&](int64_t count) {
    return std::max(std::min(kSide / static_cast<double>(most), kCell), std::min(24.0, kSide / static_cast<double>(count)));
  };
  double low = 0, high = 0;
  for (const double value : map.values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Wide text labels are rotated, and wide numeric labels are thinned out.
  const double column_label = widest(map.column_labels);
  const bool turned = !given.column_labels.empty() && column_label + 4 > extent(map.columns);
  const double left = 32 + widest(map.row_labels), top = 54 + (turned ? column_label : kLine);
  const Grid grid{left, top, extent(map.columns), extent(map.rows()), std::max(-low, high)};
  const double right = left + grid.width * static_cast<double>(map.columns);
  double bottom = top + grid.height * static_cast<double>(map.rows());
  const bool has_numbers = most <= kWithNumbers;
  std::string svg = svg_text(0, 20, "ink strong", "", map.title) + svg_text((left + right) / 2, 44, "muted", kMiddle, map.column_name);
  svg += fmt::format(
      "<g transform=\"translate(14 {:.6g}) rotate(-90)\">{}</g>\n", (top + bottom) / 2, svg_text(0, 0, "muted", kMiddle, map.row_name));
  svg += draw_side(grid, map.column_labels, true, turned, turned ? kLine : column_label + 4);
  svg += draw_side(grid, map.row_labels, false, false, kLine);
  svg += draw_cells(grid, map.values, static_cast<size_t>(map.columns), has_numbers);
  if (most <= kWithTitles) svg += draw_titles(grid, map);
  if (!has_numbers) {  // the legend: cells with their values
    const std::vector<double> shades = shades_of(low, high);
    svg += draw_cells({left, bottom + 14, kCell, 20, grid.largest}, shades, shades.size(), true);
    bottom += 30;
  }
  return {.name = map.title, .width = std::max({right + 8, 1.1 * width_of(map.title), 4 * kCell}), .height = bottom + 12, .elements = svg};
}

}  // namespace ricci::apps
