#include "apps/lab/analysis/sample_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "core/error.h"

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
  for (const auto& reference : references) {  // the shorter one where two are equally near
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

// ---- Kneser-Ney

KneserNey::Gram KneserNey::gram_of(std::span<const int64_t> tokens) {
  Gram gram;
  gram.fill(-1);
  for (size_t i = 0; i < tokens.size(); ++i) gram[i] = static_cast<int32_t>(tokens[i]);
  return gram;
}

KneserNey::Order::Order(std::vector<Gram> all, size_t length) {
  std::sort(all.begin(), all.end());
  for (const Gram& gram : all) {  // equal neighbours become one with their number
    if (grams.empty() || grams.back() != gram) {
      grams.push_back(gram);
      counts.push_back(0);
    }
    ++counts.back();
  }
  std::array<double, 5> n{};                   // n-grams that have the count k
  for (size_t i = 0; i < grams.size(); ++i) {  // n-grams with the same history are next to each other
    Gram history = grams[i];
    history[length - 1] = -1;
    if (histories.empty() || histories.back().gram != history) histories.push_back({history});
    History& last = histories.back();
    last.count += counts[i];
    ++last.seen[static_cast<size_t>(std::min<int64_t>(counts[i], 3) - 1)];
    if (counts[i] < 5) ++n[static_cast<size_t>(counts[i])];
  }
  if (n[1] == 0 || n[2] == 0 || n[3] == 0 || n[4] == 0) return;
  const double y = n[1] / (n[1] + 2 * n[2]);
  for (size_t k = 1; k <= 3; ++k) {
    const double estimate = static_cast<double>(k) - static_cast<double>(k + 1) * y * n[k + 1] / n[k];
    if (estimate > 0) discounts[k - 1] = estimate;
  }
}

void KneserNey::check_id(int64_t id) const {
  if (id < 0 || id >= vocab_) fail("Kneser-Ney: token {} is outside 0 .. {}", {id, vocab_ - 1});
}

KneserNey::KneserNey(std::span<const int64_t> text, size_t order, int64_t vocab) : vocab_(vocab) {
  if (order < 1 || order > kMaxOrder) fail("Kneser-Ney: n-grams of {}, expected 1 .. {}", {order, kMaxOrder});
  if (text.size() < order) fail("Kneser-Ney: a text of {} tokens, expected {} or more", {text.size(), order});
  for (const int64_t id : text) check_id(id);
  std::vector<Gram> grams;
  for (size_t i = 0; i + order <= text.size(); ++i) grams.push_back(gram_of(text.subspan(i, order)));
  for (size_t length = order; length > 0; --length) {
    orders_.emplace(orders_.begin(), std::move(grams), length);
    // A shorter n-gram counts once for each different token seen before it.
    grams.clear();
    for (Gram gram : orders_.front().grams) {
      std::rotate(gram.begin(), gram.begin() + 1, gram.end());
      gram.back() = -1;
      grams.push_back(gram);
    }
  }
}

double KneserNey::probability(std::span<const int64_t> tokens) const {
  if (tokens.empty()) fail("Kneser-Ney: no token");
  if (tokens.size() > orders_.size()) tokens = tokens.last(orders_.size());
  for (const int64_t id : tokens) check_id(id);
  double p = 1 / static_cast<double>(vocab_);
  for (size_t length = 1; length <= tokens.size(); ++length) {
    const Order& order = orders_[length - 1];
    const auto gram = tokens.last(length);
    const Gram history = gram_of(gram.first(length - 1));
    const auto found = std::lower_bound(
        order.histories.begin(), order.histories.end(), history, [](const History& a, const Gram& b) { return a.gram < b; });
    if (found == order.histories.end() || found->gram != history) break;  // nor was any longer one seen
    const Gram whole = gram_of(gram);
    const auto place = std::lower_bound(order.grams.begin(), order.grams.end(), whole);
    double kept = 0;
    if (place != order.grams.end() && *place == whole) {
      const int64_t count = order.counts[static_cast<size_t>(place - order.grams.begin())];
      kept = static_cast<double>(count) - order.discounts[static_cast<size_t>(std::min<int64_t>(count, 3) - 1)];
    }
    double given = 0;
    for (size_t k = 0; k < order.discounts.size(); ++k) given += order.discounts[k] * static_cast<double>(found->seen[k]);
    p = (kept + given * p) / static_cast<double>(found->count);
  }
  return p;
}

double KneserNey::nats_per_token(std::span<const int64_t> tokens, int64_t first) const {
  const auto size = static_cast<int64_t>(tokens.size());
  if (first < 0 || first >= size) fail("Kneser-Ney: from token {} of {} on", {first, size});
  double nats = 0;
  for (int64_t i = first; i < size; ++i) nats -= std::log(probability(tokens.first(static_cast<size_t>(i) + 1)));
  return nats / static_cast<double>(size - first);
}

}  // namespace ricci::apps
