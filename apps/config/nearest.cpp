#include "apps/config/nearest.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace ricci::apps {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  word = word.substr(0, 100);
  size_t least = SIZE_MAX;
  std::string best;
  for (const std::string& candidate : known)
    if (const size_t distance = edit_distance(word, candidate); distance < least) least = distance, best = candidate;
  return best;
}

}  // namespace ricci::apps
