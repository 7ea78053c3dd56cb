#include "apps/terminal/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/error.h"

namespace ricci::apps {

std::string with_commas(int64_t number) {
  std::string digits = fmt::format("{}", number);
  for (int position = static_cast<int>(digits.size()) - 3; position > (number < 0 ? 1 : 0); position -= 3)
    digits.insert(static_cast<size_t>(position), ",");
  return digits;
}

std::string counted(int64_t number, const std::string& noun) { return with_commas(number) + " " + noun + (number == 1 ? "" : "s"); }

std::string short_number(double number) {
  constexpr const char* units[] = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  for (; number >= 999.5 && unit + 1 < std::size(units); ++unit) number /= 1000;
  return fmt::format("{:.{}f}{}", number, unit > 0 && number < 99.95 ? 1 : 0, units[unit]);
}

std::string clock_time(double seconds) {
  const auto all = static_cast<int64_t>(std::clamp(std::round(seconds), 0.0, 3.6e9)), h = all / 3600, m = all / 60 % 60, s = all % 60;
  return h > 0 ? fmt::format("{}:{:02}:{:02}", h, m, s) : fmt::format("{}:{:02}", m, s);
}

std::string show_number(const char* pattern, double number) {
  return format_message(std::abs(number) < 1e9 ? pattern : "{:.3g}", {number});
}

}  // namespace ricci::apps
