#include "apps/lab/drawing/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

constexpr int64_t kMinPixels = 480;  // of the longer side, so that programs which smooth pictures smooth the edges of cells alone
constexpr double kEdge = 14, kTitle = 44, kLetter = 6.6, kPicture = 420, kLegend = 54, kMaxLabel = 110;
constexpr int64_t kMaxLabels = 72;

constexpr Colour kGrey{0x9a, 0xa3, 0xad};
constexpr Colour kBlues[] = {{0xff, 0xff, 0xff}, {0x9a, 0xd4, 0xf5}, {0x00, 0x72, 0xb2}, {0x08, 0x24, 0x40}};
constexpr Colour kBrowns[] = {{0xff, 0xff, 0xff}, {0xf9, 0xc3, 0x8f}, {0xd5, 0x5e, 0x00}, {0x4a, 0x1d, 0x00}};

// The colour at a share of the way through equally distant ones.
Colour between(std::span<const Colour> colours, double share) {
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(colours.size() - 1);
  const size_t first = std::min(static_cast<size_t>(place), colours.size() - 2);
  Colour mixed;
  for (size_t i = 0; i < 3; ++i)
    mixed[i] = static_cast<uint8_t>(
        std::lround(colours[first][i] + (place - static_cast<double>(first)) * (colours[first + 1][i] - colours[first][i])));
  return mixed;
}

std::string image(double x, double y, double width, double height, int64_t columns, const std::vector<Colour>& pixels) {
  return fmt::format("<image x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" height=\"{:.6g}\" preserveAspectRatio=\"none\" "
                     "style=\"image-rendering:pixelated\" href=\"{}\"/>\n",
             x, y, width, height, to_data_address(to_png(columns, pixels))) +
         svg_rectangle(x, y, width, height, "class=\"axis\" fill=\"none\"");
}

// The labels of one side: all of them, or every tenth number and the like where there are too many.
std::vector<std::string> labels_of(const std::vector<std::string>& given, int64_t count) {
  std::vector<std::string> labels(static_cast<size_t>(count));
  int64_t every = 1;
  for (int64_t factor : {2, 5, 10, 20, 50, 100})
    if (count / every > (given.empty() ? 16 : kMaxLabels)) every = factor;
  for (int64_t i = 0; i < count; i += every)
    labels[static_cast<size_t>(i)] = given.empty() ? std::to_string(i) : given[static_cast<size_t>(i)];
  return labels;
}

double room_for(const std::vector<std::string>& labels) {
  double room = 0;
  for (const std::string& label : labels) room = std::max(room, kLetter * static_cast<double>(count_characters(label)) + 8);
  return std::min(room, kMaxLabel);
}

int64_t pixels_per_cell(const HeatMap& map) { return std::max<int64_t>(1, kMinPixels / std::max(map.rows(), map.columns)); }

std::vector<Colour> pixels_of(const HeatMap& map, const ColourScale& scale) {
  const int64_t side = pixels_per_cell(map);
  std::vector<Colour> pixels;
  for (int64_t y = 0; y < map.rows() * side; ++y)
    for (int64_t cell = 0; cell < map.columns; ++cell)
      pixels.insert(pixels.end(), static_cast<size_t>(side), scale.at(map.values[static_cast<size_t>(y / side * map.columns + cell)]));
  return pixels;
}

struct Box {
  double left, top, cell_width, cell_height, width, height;
};

std::string draw_labels(const Box& box, const std::vector<std::string>& rows, const std::vector<std::string>& columns) {
  std::string svg;
  for (size_t i = 0; i < rows.size(); ++i)
    if (!rows[i].empty())
      svg += svg_text(
          box.left - 5, box.top + (static_cast<double>(i) + 0.5) * box.cell_height + 3.5, "muted", " text-anchor=\"end\"", rows[i]);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].empty()) continue;
    const double x = box.left + (static_cast<double>(i) + 0.5) * box.cell_width + 3.5, y = box.top - 5;
    svg += svg_text(x, y, "muted", fmt::format(" transform=\"rotate(-90 {:.6g} {:.6g})\"", x, y), columns[i]);
  }
  return svg;
}

std::string draw_legend(const Box& box, const ColourScale& scale) {
  constexpr int64_t kSteps = 128;
  std::vector<Colour> pixels;
  for (int64_t i = 0; i < kSteps; ++i)
    pixels.push_back(scale.at(scale.low + (scale.high - scale.low) * static_cast<double>(i) / (kSteps - 1)));
  const double y = box.top + box.height + 30;
  return image(box.left, y, 160, 9, kSteps, pixels) + svg_text(box.left, y + 22, "muted", "", fmt::format("{:.3g}", scale.low)) +
         svg_text(box.left + 160, y + 22, "muted", " text-anchor=\"end\"", fmt::format("{:.3g}", scale.high));
}

}  // namespace

Shrunk shrunk(const HeatMap& map) {
  const int64_t rows = map.rows(), block = (std::max(rows, map.columns) + kMaxCells - 1) / kMaxCells;
  if (block <= 1) return {map, 1};
  Shrunk result{map, block};
  const auto blocks = [&](int64_t count) { return (count + block - 1) / block; };
  result.map.columns = blocks(map.columns);
  result.map.values.assign(static_cast<size_t>(blocks(rows) * blocks(map.columns)), 0);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < map.columns; ++j) {
      double& cell = result.map.values[static_cast<size_t>(i / block * blocks(map.columns) + j / block)];
      const double value = map.values[static_cast<size_t>(i * map.columns + j)];
      if (!std::isnan(cell) && !(std::abs(value) <= std::abs(cell))) cell = value;  // one NaN makes the cell NaN
    }
  const auto every = [&](std::vector<std::string>& labels, int64_t count) {
    std::vector<std::string> kept;
    for (int64_t i = 0; i < count; i += block) kept.push_back(labels.empty() ? std::to_string(i) : labels[static_cast<size_t>(i)]);
    labels = kept;
  };
  every(result.map.row_labels, rows);
  every(result.map.column_labels, map.columns);
  return result;
}

Colour ColourScale::at(double value) const {
  if (!std::isfinite(value)) return kGrey;
  const double end = std::max(std::abs(low), std::abs(high));
  const double share = end > 0 ? std::sqrt(std::abs(value) / end) : 0;
  return value < 0 ? between(kBrowns, share) : between(kBlues, share);
}

ColourScale scale_of(const std::vector<double>& values) {
  ColourScale scale;
  for (double value : values)
    if (std::isfinite(value)) scale = {std::min(scale.low, value), std::max(scale.high, value)};
  return scale;
}

std::string to_svg(const HeatMap& given, Theme theme, bool with_style) {
  const HeatMap map = shrunk(given).map;
  const std::vector<std::string> rows = labels_of(map.row_labels, map.rows()), columns = labels_of(map.column_labels, map.columns);
  // Cells are squares, unless there are many more of one side than of the other.
  const double count = static_cast<double>(std::max(map.rows(), map.columns)),
               size = std::max(kPicture / count, count <= kMaxLabels ? 11.0 : 1.0);
  const auto extent = [&](int64_t cells) {
    return std::max(size * static_cast<double>(cells), std::min(90.0, 40.0 * static_cast<double>(cells)));
  };
  const double width = extent(map.columns), height = extent(map.rows());
  const Box box{kEdge + 18 + room_for(rows), kTitle + 16 + room_for(columns), width / static_cast<double>(map.columns),
      height / static_cast<double>(map.rows()), width, height};
  const double whole_width = std::max(box.left + width, kLetter * static_cast<double>(count_characters(map.title)) * 1.25) + kEdge,
               whole_height = box.top + height + kLegend + kEdge;
  std::string svg = svg_head(whole_width, whole_height, 11, map.title, with_style ? style_of(theme) : "");
  svg += svg_text(kEdge, 24, "ink", " font-size=\"14\" font-weight=\"600\"", map.title);
  svg += svg_text(box.left + width / 2, kTitle, "muted", " text-anchor=\"middle\"", map.column_name);
  const double middle = box.top + height / 2;
  svg += svg_text(kEdge + 6, middle, "muted",
      fmt::format(" text-anchor=\"middle\" transform=\"rotate(-90 {:.6g} {:.6g})\"", kEdge + 6, middle), map.row_name);
  const ColourScale scale = scale_of(map.values);
  svg += image(box.left, box.top, width, height, map.columns * pixels_per_cell(map), pixels_of(map, scale));
  return svg + draw_labels(box, rows, columns) + draw_legend(box, scale) + "</svg>\n";
}

}  // namespace ricci::apps
