#include "apps/lab/analysis/sample_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

namespace ricci::apps {
namespace {

using Grams = std::map<std::vector<std::string>, int64_t>;

Grams grams_of(const std::vector<std::string>& units, size_t n) {
  Grams grams;
  for (size_t i = 0; i + n <= units.size(); ++i)
    ++grams[{units.begin() + static_cast<ptrdiff_t>(i), units.begin() + static_cast<ptrdiff_t>(i + n)}];
  return grams;
}

}  // namespace

double repeated_share(std::span<const int64_t> ids, size_t n) {
  if (ids.size() < n) return 0;
  std::set<std::vector<int64_t>> different;
  const size_t all = ids.size() - n + 1;
  for (size_t i = 0; i < all; ++i) different.emplace(ids.begin() + static_cast<ptrdiff_t>(i), ids.begin() + static_cast<ptrdiff_t>(i + n));
  return 1 - static_cast<double>(different.size()) / static_cast<double>(all);
}

void Bleu::add(const std::vector<std::string>& candidate, const std::vector<std::vector<std::string>>& references) {
  for (size_t n = 1; n <= kMax; ++n) {
    Grams max;  // in any one reference
    for (const auto& reference : references)
      for (const auto& [gram, count] : grams_of(reference, n)) max[gram] = std::max(max[gram], count);
    for (const auto& [gram, count] : grams_of(candidate, n)) {
      const auto found = max.find(gram);
      matched_[n - 1] += static_cast<double>(found == max.end() ? 0 : std::min(count, found->second));
      all_[n - 1] += static_cast<double>(count);
    }
  }
  const auto length = static_cast<double>(candidate.size());
  double nearest = 0, distance = -1;
  for (const auto& reference : references) {  // of equally near ones the shorter
    const double other = static_cast<double>(reference.size()), d = std::abs(other - length);
    if (distance >= 0 && (d > distance || (d == distance && other >= nearest))) continue;
    nearest = other;
    distance = d;
  }
  candidates_ += length;
  references_ += nearest;
}

double Bleu::value() const {
  double logs = 0;
  for (size_t n = 0; n < kMax; ++n) {
    if (matched_[n] == 0) return 0;
    logs += std::log(matched_[n] / all_[n]) / kMax;
  }
  const double brevity = candidates_ >= references_ ? 0 : 1 - references_ / candidates_;
  return 100 * std::exp(logs + brevity);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace ricci::apps
