// Axes: from values to a share of the length, and ticks at round numbers.
#pragma once
#include <cmath>
#include <span>
#include <string>
#include <vector>

namespace ricci::apps {

struct Axis {
  double low = 0, high = 1;  // low < high; both above 0 on a logarithmic axis
  bool log = false;
  bool whole = false;  // a linear axis with ticks at whole numbers only

  // 0 at low, 1 at high.
  double share(double value) const;
  // Whether the value lies between the ends, up to rounding.
  bool shows(double value) const { return share(value) >= -1e-9 && share(value) <= 1 + 1e-9; }
};

// Whether an axis can show the value: it is finite, and not so large or so small that the ends of an axis or the distance of its
// ticks would not be.
inline bool drawable(double value) { return value == 0 || (std::abs(value) >= 1e-200 && std::abs(value) <= 1e200); }

// An axis that shows all values, with a little space around them on a linear one; from 0 on where they are positive and
// reach far down. The values are drawable, and above 0 for a logarithmic axis. No value or a single one gives a range too.
Axis axis_around(std::span<const double> values, bool log, bool with_margin);

struct Tick {
  double value;
  std::string label;  // 0.25, 1,500, 20k, 5e-4
};

// About `count` ticks, from 4 on: on a linear axis at least 2 and at most one more than asked for, at multiples of 1, 2 or 5
// times a power of ten; on a logarithmic axis of a decade and more at 1, 2 and 5 times powers of ten, or at powers alone.
std::vector<Tick> ticks(const Axis& axis, int count);

}  // namespace ricci::apps
