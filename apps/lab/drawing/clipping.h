// Curves whose y axis leaves some values out: they end at the border, and marks tell of those values.
#pragma once
#include <string>
#include <vector>

#include "apps/lab/drawing/svg.h"

namespace ricci::apps {

// Triangles at the upper and lower border of the box, at the places of the values that lie outside.
std::string marks_of(const Panel& panel, const PanelBox& box);

// The path through the points, cut where it leaves the box.
std::string path_through(const std::vector<Point>& points, const PanelBox& box);

}  // namespace ricci::apps
