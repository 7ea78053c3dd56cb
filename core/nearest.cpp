#include "core/nearest.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "core/error.h"

namespace ricci {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);  // distances for the first i - 1, i and i + 1 letters of a
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j] + (a[i] != b[j]), above[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    before = above;
    above.swap(row);
  }
  return above[b.size()];
}

bool is_near(size_t distance, size_t letters) { return distance <= (letters + 2) / 4; }

std::string nearest_of(std::string_view word, const std::vector<std::string>& known) {
  word = word.substr(0, 100);
  size_t least = SIZE_MAX;
  std::string best;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return is_near(least, word.size()) ? best : "";
}

std::string nearest_note(std::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_of(word, known);
  return nearest.empty() ? "" : ", the nearest is '" + one_line(nearest) + "'";
}

}  // namespace ricci
