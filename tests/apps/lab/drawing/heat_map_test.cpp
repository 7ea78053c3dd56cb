// Tables as pictures: colours, shrinking, and PNGs that another reader of the format would accept.
#include "apps/lab/drawing/heat_map.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cmath>

#include "tests/data/files.h"

using namespace ricci::apps;
using test_data::error_of;

namespace {

uint32_t number_at(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return value;
}

}  // namespace

TEST_CASE("png: chunks with right checksums that hold the pixels") {
  const std::string png = to_png(2, {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {250, 251, 252}, {0, 0, 0}, {255, 255, 255}});
  REQUIRE(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  std::string kinds, pixels(64, 'x');
  for (size_t at = 8; at < png.size(); at += 12 + number_at(png, at)) {
    const uint32_t size = number_at(png, at);
    const std::string checked = png.substr(at + 4, 4 + size);
    CHECK(number_at(png, at + 8 + size) == ::crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size())));
    kinds += checked.substr(0, 4);
    if (checked.starts_with("IHDR")) CHECK(checked.substr(4) == std::string("\0\0\0\2\0\0\0\3\x08\x02\0\0\0", 13));
    uLongf room = pixels.size();
    if (checked.starts_with("IDAT")) {
      REQUIRE(
          ::uncompress(reinterpret_cast<Bytef*>(pixels.data()), &room, reinterpret_cast<const Bytef*>(checked.data() + 4), size) == Z_OK);
      pixels.resize(room);
    }
  }
  CHECK(kinds == "IHDRIDATIEND");
  CHECK(pixels == std::string("\0\1\2\3\4\5\6\0\7\10\11\372\373\374\0\0\0\0\377\377\377", 21));
  CHECK(to_data_address("M") == "data:image/png;base64,TQ==");
  CHECK(to_data_address("Ma") == "data:image/png;base64,TWE=");
  CHECK(to_data_address("Man\xff") == "data:image/png;base64,TWFu/w==");
  CHECK(error_of([] { to_png(2, {{1, 2, 3}}); }) == "png: 1 pixels in rows of 2");
}

TEST_CASE("heat map: colours go with the root of the share, from white; what is not finite is grey") {
  const ColourScale scale = scale_of({-4, 1, 0.5, std::nan(""), INFINITY});
  CHECK(scale.low == -4);
  CHECK(scale.high == 1);
  CHECK(scale.colour_of(0) == Colour{255, 255, 255});
  CHECK(scale.colour_of(-4) == Colour{0x4a, 0x1d, 0x00});
  CHECK(ColourScale{0, 9}.colour_of(9) == Colour{0x08, 0x24, 0x40});
  CHECK(ColourScale{0, 9}.colour_of(1) == Colour{0x9a, 0xd4, 0xf5});  // a third of the way is the second of four colours
  CHECK(scale.colour_of(std::nan("")) == scale.colour_of(-INFINITY));
  CHECK(scale_of({3, 5}).low == 0);
  CHECK(ColourScale{}.colour_of(0) == Colour{255, 255, 255});
}

TEST_CASE("heat map: a large table keeps the number of largest magnitude of each block") {
  HeatMap map{"t", "r", "c", {}, {}, 600, std::vector<double>(600 * 3, 0.5)};
  map.values[1 * 600 + 4] = -7, map.values[599] = 3, map.values[6] = std::nan("");
  const HeatMap small = shrunk(map);
  CHECK(small.block == 3);
  CHECK(small.columns == 200);
  CHECK(small.rows() == 1);
  CHECK(small.values[1] == -7);
  CHECK(small.values[199] == 3);
  CHECK(small.values[0] == 0.5);
  CHECK(std::isnan(small.values[2]));
  CHECK(small.column_labels[1] == "3");
  CHECK(shrunk({"t", "r", "c", {}, {}, 2, {1, 2, 3, 4}}).block == 1);
}

TEST_CASE("heat map: texts are escaped, labels thinned where there are too many") {
  const std::string svg = to_svg(HeatMap{"a<b", "r&", "\"c\"", {"<tok>", "\x01"}, {"x", "y"}, 2, {0, 1, 2, 3}}, Theme::light);
  for (const char* text : {"a&lt;b", "r&amp;", "&quot;c&quot;", "&lt;tok&gt;", "\uFFFD"}) CHECK(svg.find(text) != svg.npos);
  CHECK(svg.find("<tok>") == svg.npos);
  const std::string many = to_svg(HeatMap{"", "", "", {}, {}, 100, std::vector<double>(100)}, Theme::light);
  CHECK(many.find(">90</text>") != many.npos);
  CHECK(many.find(">91</text>") == many.npos);
}

TEST_CASE("heat map: in the dark theme 0 is dark, and in the light one white") {
  const HeatMap map{"scores", "row", "column", {}, {}, 2, {0, 1, 1, 0}};
  CHECK(to_svg(map, Theme::dark, true).find(".cells{filter:invert") != std::string::npos);
  CHECK(to_svg(map, Theme::light, true).find(".cells{filter:none}") != std::string::npos);
  CHECK(to_svg(map, Theme::light, true).find("class=\"cells\"") != std::string::npos);
}

TEST_CASE("chart: an axis of whole numbers begins where they do and has no tick between two of them") {
  Chart chart{.x_name = "layer", .whole_x = true, .panels = {{"loss", ""}}};
  chart.panels[0].curves.push_back({.name = "a", .points = {{1, 2}, {2, 1}, {3, 5}}});
  const Axis x = x_axis_of(chart, "");
  CHECK(x.low == 1);
  CHECK(x.high == 3);
  std::string labels;
  for (const Tick& tick : ticks(x, 8)) labels += tick.label + " ";
  CHECK(labels == "1 2 3 ");
}
