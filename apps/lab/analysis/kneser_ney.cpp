#include "apps/lab/analysis/kneser_ney.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace ricci::apps {

KneserNey::Gram KneserNey::gram_of(std::span<const int64_t> tokens) {
  Gram gram;
  gram.fill(-1);
  for (size_t i = 0; i < tokens.size(); ++i) gram[i] = static_cast<int32_t>(tokens[i]);
  return gram;
}

// Equal neighbours become one with their number.
void KneserNey::count_sorted(std::vector<Gram> sorted, Order& order) {
  for (const Gram& gram : sorted) {
    if (order.grams.empty() || order.grams.back() != gram) {
      order.grams.push_back(gram);
      order.counts.push_back(0);
    }
    ++order.counts.back();
  }
}

// N-grams with the same history stand next to each other.
void KneserNey::add_histories(Order& order, size_t length) {
  for (size_t i = 0; i < order.grams.size(); ++i) {
    Gram history = order.grams[i];
    history[length - 1] = -1;
    if (order.histories.empty() || order.histories.back().gram != history) order.histories.push_back({history});
    History& last = order.histories.back();
    last.count += order.counts[i];
    if (order.counts[i] == 1) ++last.ones;
    else if (order.counts[i] == 2) ++last.twos;
    else ++last.more;
  }
}

void KneserNey::set_discounts(Order& order) {
  std::array<double, 5> n{};  // n-grams that have the count k
  for (const int64_t count : order.counts)
    if (count < 5) ++n[static_cast<size_t>(count)];
  order.discounts = {0.5, 1, 1.5};
  if (n[1] == 0 || n[2] == 0 || n[3] == 0 || n[4] == 0) return;
  const double y = n[1] / (n[1] + 2 * n[2]);
  for (size_t k = 1; k <= 3; ++k) {
    const double estimate = static_cast<double>(k) - static_cast<double>(k + 1) * y * n[k + 1] / n[k];
    if (estimate > 0) order.discounts[k - 1] = estimate;
  }
}

void KneserNey::check_id(int64_t id) const {
  if (id < 0 || id >= vocab_) fail("Kneser-Ney: token {} is outside 0 .. {}", {id, vocab_ - 1});
}

KneserNey::KneserNey(std::span<const int64_t> text, size_t order, int64_t vocab) : vocab_(vocab), orders_(order) {
  if (order < 1 || order > kMaxOrder) fail("Kneser-Ney: n-grams of {}, expected 1 .. {}", {order, kMaxOrder});
  if (text.size() < order) fail("Kneser-Ney: a text of {} tokens, expected {} or more", {text.size(), order});
  for (const int64_t id : text) check_id(id);
  std::vector<Gram> grams;
  for (size_t i = 0; i + order <= text.size(); ++i) grams.push_back(gram_of(text.subspan(i, order)));
  for (size_t length = order; length > 0; --length) {
    std::sort(grams.begin(), grams.end());
    Order& grams_of_length = orders_[length - 1];
    count_sorted(std::move(grams), grams_of_length);
    add_histories(grams_of_length, length);
    set_discounts(grams_of_length);
    // A shorter n-gram counts once for each different token seen in front of it.
    grams.clear();
    for (Gram gram : grams_of_length.grams) {
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
    const auto& [d1, d2, d3] = order.discounts;
    const double given =
        d1 * static_cast<double>(found->ones) + d2 * static_cast<double>(found->twos) + d3 * static_cast<double>(found->more);
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
