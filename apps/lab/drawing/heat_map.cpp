#include "apps/lab/drawing/heat_map.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/error.h"
#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

constexpr int64_t kMinPixels = 480;  // on the longer side, so that programs which smooth pictures smooth the edges of cells alone
constexpr double kMapEdge = 14, kMapTitle = 44, kMapLetter = 6.6, kPicture = 420, kLegend = 54, kMaxLabel = 110;
constexpr int64_t kMaxLabels = 72, kMaxCells = 256;

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

struct Box {
  double left, top, width, height;
};

std::string image(const Box& box, int64_t columns, const std::vector<Colour>& pixels) {
  return fmt::format("<image x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" height=\"{:.6g}\" preserveAspectRatio=\"none\" "
                     "class=\"cells\" style=\"image-rendering:pixelated\" href=\"{}\"/>\n",
             box.left, box.top, box.width, box.height, to_data_address(to_png(columns, pixels))) +
         svg_rectangle(box.left, box.top, box.width, box.height, "class=\"axis\" fill=\"none\"");
}

// Text from the bottom to the top.
std::string turned_text(double x, double y, const std::string& more, const std::string& content) {
  return svg_text(x, y, "muted", fmt::format("{} transform=\"rotate(-90 {:.6g} {:.6g})\"", more, x, y), content);
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
  for (const std::string& label : labels) room = std::max(room, kMapLetter * static_cast<double>(count_characters(label)) + 8);
  return std::min(room, kMaxLabel);
}

std::string draw_cells(const Box& box, const HeatMap& map, const ColourScale& scale) {
  const int64_t side = std::max<int64_t>(1, kMinPixels / std::max(map.rows(), map.columns));  // pixels
  std::vector<Colour> pixels;
  for (int64_t y = 0; y < map.rows() * side; ++y)
    for (int64_t cell = 0; cell < map.columns; ++cell)
      pixels.insert(
          pixels.end(), static_cast<size_t>(side), scale.colour_of(map.values[static_cast<size_t>(y / side * map.columns + cell)]));
  return image(box, map.columns * side, pixels);
}

std::string draw_labels(const Box& box, const std::vector<std::string>& rows, const std::vector<std::string>& columns) {
  std::string svg;
  const auto middle = [](size_t i, const auto& all, double extent) {
    return (static_cast<double>(i) + 0.5) * (extent / static_cast<double>(all.size())) + 3.5;
  };
  for (size_t i = 0; i < rows.size(); ++i)
    if (!rows[i].empty()) svg += svg_text(box.left - 5, box.top + middle(i, rows, box.height), "muted", " text-anchor=\"end\"", rows[i]);
  for (size_t i = 0; i < columns.size(); ++i)
    if (!columns[i].empty()) svg += turned_text(box.left + middle(i, columns, box.width), box.top - 5, "", columns[i]);
  return svg;
}

std::string draw_legend(const Box& box, const ColourScale& scale) {
  constexpr int64_t kSteps = 128;
  std::vector<Colour> pixels;
  for (int64_t i = 0; i < kSteps; ++i) pixels.push_back(scale.colour_of(scale.value_at(static_cast<double>(i) / (kSteps - 1))));
  const double y = box.top + box.height + 30;
  std::string svg = image({box.left, y, 160, 9}, kSteps, pixels);
  for (const auto& [place, anchor] : {std::pair{0.0, "start"}, {0.5, "middle"}, {1.0, "end"}})
    svg += svg_text(
        box.left + 160 * place, y + 22, "muted", fmt::format(" text-anchor=\"{}\"", anchor), fmt::format("{:.3g}", scale.value_at(place)));
  return svg;
}

// ---- PNG: chunks of length, kind, content and checksum

std::string big_endian(uint64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

const Bytef* bytes_of(const std::string& text) { return reinterpret_cast<const Bytef*>(text.data()); }

std::string chunk(const std::string& kind, const std::string& content) {
  const std::string checked = kind + content;
  return big_endian(content.size()) + checked + big_endian(::crc32(0, bytes_of(checked), static_cast<uInt>(checked.size())));
}

std::string compressed(const std::string& bytes) {
  uLongf size = ::compressBound(bytes.size());
  std::string result(size, '\0');
  if (::compress(reinterpret_cast<Bytef*>(result.data()), &size, bytes_of(bytes), bytes.size()) != Z_OK)
    fail("png: no memory for {} bytes", {bytes.size()});
  result.resize(size);
  return result;
}

}  // namespace

std::string to_png(int64_t width, const std::vector<Colour>& pixels) {
  if (width < 1 || pixels.empty() || static_cast<int64_t>(pixels.size()) % width)
    fail("png: {} pixels in rows of {}", {pixels.size(), width});
  std::string rows;
  for (size_t i = 0; i < pixels.size(); ++i) {
    if (static_cast<int64_t>(i) % width == 0) rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(pixels[i].data()), 3);
  }
  const std::string header = big_endian(static_cast<uint64_t>(width)) + big_endian(pixels.size() / static_cast<uint64_t>(width)) +
                             std::string("\x08\x02\0\0\0", 5);  // 8 bits a colour, red green blue
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", compressed(rows)) + chunk("IEND", "");
}

std::string to_data_address(const std::string& png) {
  constexpr const char* kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string address = "data:image/png;base64,";
  for (size_t i = 0; i < png.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j) three = three << 8 | (i + j < png.size() ? static_cast<unsigned char>(png[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) address += i + j <= png.size() ? kLetters[three >> (18 - 6 * j) & 63] : '=';
  }
  return address;
}

HeatMap shrunk(HeatMap map) {
  const int64_t rows = map.rows(), columns = map.columns, block = (std::max(rows, columns) + kMaxCells - 1) / kMaxCells;
  if (block <= 1) return map;
  const auto blocks = [&](int64_t count) { return (count + block - 1) / block; };
  const std::vector<double> values = std::exchange(map.values, std::vector<double>(static_cast<size_t>(blocks(rows) * blocks(columns))));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      double& cell = map.values[static_cast<size_t>(i / block * blocks(columns) + j / block)];
      const double value = values[static_cast<size_t>(i * columns + j)];
      if (!std::isnan(cell) && !(std::abs(value) <= std::abs(cell))) cell = value;  // one NaN makes the cell NaN
    }
  const auto every = [&](std::vector<std::string>& labels, int64_t count) {
    std::vector<std::string> kept;
    for (int64_t i = 0; i < count; i += block) kept.push_back(labels.empty() ? std::to_string(i) : labels[static_cast<size_t>(i)]);
    labels = kept;
  };
  every(map.row_labels, rows);
  every(map.column_labels, columns);
  map.columns = blocks(columns);
  map.block = block;
  return map;
}

Colour ColourScale::colour_of(double value) const {
  if (!std::isfinite(value)) return kGrey;
  const double end = std::max(std::abs(low), std::abs(high));
  const double share = end > 0 ? std::sqrt(std::abs(value) / end) : 0;
  return value < 0 ? between(kBrowns, share) : between(kBlues, share);
}

double ColourScale::value_at(double place) const {
  const auto root = [](double value) { return std::copysign(std::sqrt(std::abs(value)), value); };
  const double way = root(low) + place * (root(high) - root(low));
  return std::copysign(way * way, way);
}

ColourScale scale_of(const std::vector<double>& values) {
  ColourScale scale;
  for (double value : values)
    if (std::isfinite(value)) scale = {std::min(scale.low, value), std::max(scale.high, value)};
  return scale;
}

std::string to_svg(const HeatMap& given, Theme theme, bool with_style) {
  const HeatMap map = shrunk(given);
  const std::vector<std::string> rows = labels_of(map.row_labels, map.rows()), columns = labels_of(map.column_labels, map.columns);
  // Cells are squares, unless there are many more of one side than of the other.
  const double count = static_cast<double>(std::max(map.rows(), map.columns)),
               size = std::max(kPicture / count, count <= kMaxLabels ? 11.0 : 1.0);
  const auto extent = [&](int64_t cells) {
    return std::max(size * static_cast<double>(cells), std::min(90.0, 40.0 * static_cast<double>(cells)));
  };
  const double width = extent(map.columns), height = extent(map.rows());
  const Box box{kMapEdge + 18 + room_for(rows), kMapTitle + 16 + room_for(columns), width, height};
  const double whole_width = std::max(box.left + width, kMapLetter * static_cast<double>(count_characters(map.title)) * 1.25) + kMapEdge,
               whole_height = box.top + height + kLegend + kMapEdge;
  std::string svg = svg_head(whole_width, whole_height, 11, map.title, with_style ? style_of(theme) : "");
  svg += svg_text(kMapEdge, 24, "ink", " font-size=\"14\" font-weight=\"600\"", map.title);
  svg += svg_text(box.left + width / 2, kMapTitle, "muted", " text-anchor=\"middle\"", map.column_name);
  svg += turned_text(kMapEdge + 6, box.top + height / 2, " text-anchor=\"middle\"", map.row_name);
  const ColourScale scale = scale_of(map.values);
  return svg + draw_cells(box, map, scale) + draw_labels(box, rows, columns) + draw_legend(box, scale) + "</svg>\n";
}

}  // namespace ricci::apps
