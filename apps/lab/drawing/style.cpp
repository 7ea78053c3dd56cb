// Colours and texts of a drawing.
#include <fmt/format.h>

#include <algorithm>

#include "apps/lab/drawing/svg.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

struct Palette {
  const char *background, *ink, *muted, *grid, *axis;
  const char* curves[kColours];
};
constexpr Palette kLight = {"#ffffff", "#101215", "#59636e", "#e8ebee", "#9aa3ad",
    {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555b61", "#6a1fb8", "#8b1a1a", "#5f6b00", "#d811c0", "#003c54"}};
constexpr Palette kDark = {"#14171b", "#e8eaed", "#a0a9b4", "#272c33", "#5c6671",
    {"#4aa8e8", "#f0813a", "#2fc29b", "#e39ac4", "#f2bd4a", "#9ad4f5", "#8d949d", "#8f55f0", "#d02c4c", "#c3e63c", "#ff6cf0", "#13707f"}};

// The rules of a palette below the element that `root` selects.
std::string rules(const std::string& root, const Palette& p) {
  std::string css = fmt::format(
      "{0}{{--background:{1};--ink:{2};--muted:{3};--grid:{4}}}\n", root.empty() ? ":root" : root, p.background, p.ink, p.muted, p.grid);
  const std::string in = root.empty() ? "" : root + " ";
  css += fmt::format("{0}.background{{fill:{1}}} {0}.ink{{fill:{2}}} {0}.muted{{fill:{3}}} {0}.grid{{stroke:{4}}} {0}.axis{{stroke:{5}}} "
                     "{0}.plain{{stroke:{2}}}\n",  // as no curve
      in, p.background, p.ink, p.muted, p.grid, p.axis);
  for (int i = 0; i < kColours; ++i) css += fmt::format("{0}.c{1}{{stroke:{2}}} {0}.f{1}{{fill:{2};background:{2}}}\n", in, i, p.curves[i]);
  return css;
}

// The number of bytes of the UTF-8 character that text starts with, 0 where there is none that XML allows.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool outside =
      (lead == 0xed && byte(1) >= 0xa0) || (lead == 0xf4 && byte(1) >= 0x90) || (lead == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe);
  return overlong || outside ? 0 : length;
}

}  // namespace

Theme parse_theme(const std::string& name) {
  if (name == "auto") return Theme::automatic;
  if (name == "light") return Theme::light;
  if (name == "dark") return Theme::dark;
  fail("theme: expected auto, light or dark, got '{}'", {name});
}

std::string style_of(Theme theme) {
  std::string css = rules("", theme == Theme::dark ? kDark : kLight);
  if (theme == Theme::automatic) css += "@media (prefers-color-scheme: dark) {\n" + rules("", kDark) + "}\n";
  return css + rules(":root[data-theme=light]", kLight) + rules(":root[data-theme=dark]", kDark);
}

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = character(text);
    switch (text[0]) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result.append(length ? text.substr(0, length) : "\uFFFD");
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return result;
}

}  // namespace ricci::apps
