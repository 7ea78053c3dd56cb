// A chart as SVG: the first panel over the whole width, the others in rows below it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "apps/lab/plot/chart.h"

namespace ricci::apps {

enum class Theme { light, dark, automatic };  // automatic: as the reader's system is set

// automatic, light or dark. Error: any other name.
Theme parse_theme(const std::string& name);

// Where a panel stands in the drawing, in its units (of about a pixel), and its axes.
struct PanelBox {
  double left, top, width, height;  // of the area of the curves
  Axis x, y;
};

inline const std::string& x_name_of(const Panel& panel, const Chart& chart) { return panel.x_name.empty() ? chart.x_name : panel.x_name; }

struct Layout {
  double width, height;
  std::vector<PanelBox> boxes;  // one per panel
};
Layout layout_of(const Chart& chart);

// The drawing; with_style: a whole file, otherwise for a page that holds style_of itself.
std::string to_svg(const Chart& chart, Theme theme, bool with_style = true);

// The colours as rules of CSS, for the classes that the drawing uses. In a page the attribute data-theme of its root, light
// or dark, goes before the theme. The first seven colours of the palette are those of Okabe and Ito (2008), which colour-blind readers can
// tell apart.
std::string style_of(Theme theme);

// Text for XML and HTML: &, <, > and quotes as entities; what is no character there becomes U+FFFD.
std::string escaped(std::string_view text);

}  // namespace ricci::apps
