// A chart as SVG: the first panel over the whole width, the others in rows below it. On a phone all are below each other.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "apps/lab/drawing/chart.h"
#include "core/choice.h"

namespace ricci::apps {

enum class Theme : uint8_t { light, dark, automatic };  // automatic: as the reader's system is set
constexpr auto choices(Theme) { return std::array{"light", "dark", "auto"}; }

// auto, light or dark. Error: any other name.
Theme parse_theme(const std::string& name);

// The place of a panel in the drawing, in its units (of about a pixel), and its axes.
struct PanelBox {
  double left, top, width, height;  // the area of the curves
  Axis x, y;

  double x_at(double value) const { return left + width * x.share(value); }
  double y_at(double value) const { return top + height * (1 - y.share(value)); }
};

inline const std::string& x_name_of(const Panel& panel, const Chart& chart) { return panel.x_name.empty() ? chart.x_name : panel.x_name; }

// Page: 960 units wide. Phone: 400.
enum class Screen : uint8_t { page, phone };

struct Layout {
  double width, height;
  std::vector<PanelBox> boxes;  // one per panel
};
Layout layout_of(const Chart& chart, Screen screen = Screen::page);

// The drawing; with_style: a whole file, otherwise for a page that holds style_of itself.
std::string to_svg(const Chart& chart, Theme theme, bool with_style = true, Screen screen = Screen::page);

// The path through the points, cut where it leaves the box.
std::string path_through(const std::vector<Point>& points, const PanelBox& box);

// ---- The parts of all drawings (style.cpp)

// The colours as rules of CSS, for the classes that the drawing uses. In a page the attribute data-theme of its root, light
// or dark, goes before the theme. Okabe and Ito (2008) chose the first seven colours of the palette: colour-blind readers can
// distinguish them.
std::string style_of(Theme theme);

// Text for XML and HTML: &, <, > and quotes as entities; what is no character there becomes U+FFFD.
std::string escaped(std::string_view text);

// The first element of a drawing with its title and `rules` of CSS; the background covers it.
std::string svg_head(double width, double height, int font_size, const std::string& title, const std::string& rules);

// Elements. classes: of the style; more: attributes with a blank before each.
std::string svg_text(double x, double y, const std::string& classes, const std::string& more, const std::string& content);
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& classes, const std::string& more = "");
std::string svg_rectangle(double x, double y, double width, double height, const std::string& attributes);

}  // namespace ricci::apps
