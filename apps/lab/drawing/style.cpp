// Colours and elements of a drawing.
#include <fmt/format.h>

#include <algorithm>

#include "apps/lab/drawing/svg.h"
#include "core/error.h"
#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

constexpr const char* kFont = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif";

struct Palette {
  const char *background, *ink, *muted, *grid, *axis, *cells;  // cells: a filter for pictures of heat maps, whose 0 is white
  const char* curves[kColours];
};
constexpr Palette kLight = {"#ffffff", "#101215", "#59636e", "#e8ebee", "#9aa3ad", "none",
    {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555b61", "#6a1fb8", "#8b1a1a", "#5f6b00", "#d811c0", "#003c54"}};
constexpr Palette kDark = {"#14171b", "#e8eaed", "#a0a9b4", "#272c33", "#5c6671", "invert(.92) hue-rotate(180deg)",
    {"#4aa8e8", "#f0813a", "#2fc29b", "#e39ac4", "#f2bd4a", "#9ad4f5", "#8d949d", "#8f55f0", "#d02c4c", "#c3e63c", "#ff6cf0", "#13707f"}};

// The rules of a palette below the element that `root` selects.
std::string rules(const std::string& root, const Palette& p) {
  std::string css = fmt::format(
      "{0}{{--background:{1};--ink:{2};--muted:{3};--grid:{4}}}\n", root.empty() ? ":root" : root, p.background, p.ink, p.muted, p.grid);
  const std::string prefix = root.empty() ? "" : root + " ";
  css += fmt::format("{0}.background{{fill:{1}}} {0}.ink{{fill:{2}}} {0}.muted{{fill:{3}}} {0}.grid{{stroke:{4}}} {0}.axis{{stroke:{5}}} "
                     "{0}.plain{{stroke:{2}}} {0}.cells{{filter:{6}}}\n",  // plain: as no curve
      prefix, p.background, p.ink, p.muted, p.grid, p.axis, p.cells);
  for (int i = 0; i < kColours; ++i)
    css += fmt::format("{0}.c{1}{{stroke:{2}}} {0}.f{1}{{fill:{2};background:{2}}}\n", prefix, i, p.curves[i]);
  return css;
}

}  // namespace

Theme parse_theme(const std::string& name) {
  for (const Theme theme : {Theme::light, Theme::dark, Theme::automatic})
    if (name == name_of(theme)) return theme;
  fail("theme: expected auto, light or dark, got '{}'", {name});
}

std::string style_of(Theme theme) {
  std::string css = rules("", theme == Theme::dark ? kDark : kLight);
  if (theme == Theme::automatic) css += "@media (prefers-color-scheme: dark) {\n" + rules("", kDark) + "}\n";
  return css + rules(":root[data-theme=light]", kLight) + rules(":root[data-theme=dark]", kDark);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const auto [code, bytes] = decode_utf8(text, i);
    const bool is_allowed = bytes > 0 && code >= 32 && code != 127 && code != 0xfffe && code != 0xffff;
    switch (text[i]) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += is_allowed ? text.substr(i, bytes) : "\uFFFD";
    }
    i += std::max<size_t>(bytes, 1);
  }
  return result;
}

std::string svg_head(double width, double height, int font_size, const std::string& title, const std::string& rules) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.6g} {1:.6g}\" width=\"{0:.6g}\" height=\"{1:.6g}\" role=\"img\" "
             "font-family=\"{2}\" font-size=\"{3}\">\n<title>{4}</title>\n",
             width, height, kFont, font_size, escaped(title)) +
         (rules.empty() ? "" : "<style>\n" + rules + "</style>\n") + svg_rectangle(0, 0, width, height, "class=\"background\"");
}

std::string svg_text(double x, double y, const std::string& classes, const std::string& more, const std::string& content) {
  return fmt::format("<text x=\"{:.6g}\" y=\"{:.6g}\" class=\"{}\"{}>{}</text>\n", x, y, classes, more, escaped(content));
}

std::string svg_line(double x1, double y1, double x2, double y2, const std::string& classes, const std::string& more) {
  return fmt::format("<line x1=\"{:.6g}\" y1=\"{:.6g}\" x2=\"{:.6g}\" y2=\"{:.6g}\" class=\"{}\"{}/>\n", x1, y1, x2, y2, classes, more);
}

std::string svg_rectangle(double x, double y, double width, double height, const std::string& attributes) {
  return fmt::format("<rect x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" height=\"{:.6g}\" {}/>\n", x, y, width, height, attributes);
}

}  // namespace ricci::apps
