#include "models/inference/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "core/error.h"
#include "core/philox.h"

namespace ricci {
namespace {

constexpr const char* kNoLogit = "sampling: every logit is NaN";

struct Candidate {
  int64_t token;
  double logit;
};

// The tokens that may be drawn, most probable first, equal ones in the order of their ids. They are put in order as far as they are
// asked for: a draw mostly ends among the first.
class Ranking {
 public:
  Ranking(std::span<const double> logits_v, const Sampling& s) : temperature_(s.temperature) {
    all_.reserve(logits_v.size());
    for (size_t v = 0; v < logits_v.size(); ++v)
      if (!std::isnan(logits_v[v])) all_.push_back({static_cast<int64_t>(v), logits_v[v]});
    if (all_.empty()) fail(kNoLogit);
    max_ = std::max_element(all_.begin(), all_.end(), [](const Candidate& a, const Candidate& b) { return a.logit < b.logit; })->logit;
    const auto k = static_cast<size_t>(s.top_k);
    if (k == 0 || k >= all_.size()) return;
    sort_to(k);
    const double least = all_[k - 1].logit;
    std::erase_if(all_, [&](const Candidate& c) { return c.logit < least; });
  }

  size_t size() const { return all_.size(); }
  bool is_sorted() const { return sorted_ == all_.size(); }
  void sort() { sort_to(all_.size()); }
  int64_t token(size_t rank) const { return all_[rank].token; }
  double weight(size_t rank) {
    if (rank >= sorted_) sort_to(std::max<size_t>(2 * rank, 64));
    return weight(all_[rank]);
  }
  // In the order in which they are.
  double sum_of_weights() const {
    return std::accumulate(all_.begin(), all_.end(), 0.0, [this](double sum, const Candidate& c) { return sum + weight(c); });
  }

 private:
  double weight(const Candidate& c) const { return c.logit == max_ ? 1 : std::exp((c.logit - max_) / temperature_); }
  void sort_to(size_t end) {
    const auto before = [](const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.token < b.token; };
    const auto place = [&](size_t rank) { return all_.begin() + static_cast<std::ptrdiff_t>(rank); };
    end = std::min(end, all_.size());
    if (end < all_.size()) std::nth_element(place(sorted_), place(end), all_.end(), before);
    std::sort(place(sorted_), place(end), before);
    sorted_ = end;
  }

  std::vector<Candidate> all_;
  size_t sorted_ = 0;
  double max_, temperature_;
};

// The first of equals.
int64_t most_probable(std::span<const double> logits_v) {
  size_t best = logits_v.size();
  for (size_t v = 0; v < logits_v.size(); ++v)
    if (best == logits_v.size() ? !std::isnan(logits_v[v]) : logits_v[v] > logits_v[best]) best = v;
  if (best == logits_v.size()) fail(kNoLogit);
  return static_cast<int64_t>(best);
}

// The token at which `uniform` of the weight is. The tokens that together have the share top_p count, as far as their weight is min_p at
// least: the most probable token weighs 1. `total` is the sum of all weights; where it is wrong by up to `error` and the token depends on
// that, there is no result.
std::optional<int64_t> draw_from(Ranking& ranking, const Sampling& s, double uniform, double total, double error) {
  const auto is_near = [&](double a, double b) { return error > 0 && !(std::abs(a - b) > error); };
  size_t count = ranking.size();
  if (s.top_p < 1 || s.min_p > 0) {
    double sum = 0;
    for (count = 0; count < ranking.size() && ranking.weight(count) >= s.min_p; ++count) {
      if (s.top_p < 1 && is_near(sum, s.top_p * total)) return {};
      if (s.top_p < 1 && !(sum < s.top_p * total)) break;
      sum += ranking.weight(count);
    }
    count = std::max<size_t>(1, count);
    total = sum;
    error = 0;
  }
  double left = uniform * total;
  for (size_t rank = 0; rank < count; ++rank) {
    const double weight = ranking.weight(rank);
    if (is_near(left, weight)) return {};
    if (left < weight) return ranking.token(rank);
    left -= weight;
  }
  return ranking.token(count - 1);
}

}  // namespace

void check(const Sampling& s) {
  if (!(s.temperature >= 0 && std::isfinite(s.temperature))) fail("temperature: expected 0 or more, got {}", {s.temperature});
  if (s.top_k < 0) fail("top-k: expected 0 or more, got {}", {s.top_k});
  if (!(s.top_p > 0 && s.top_p <= 1)) fail("top-p: expected more than 0 and at most 1, got {}", {s.top_p});
  if (!(s.min_p >= 0 && s.min_p <= 1)) fail("min-p: expected 0 to 1, got {}", {s.min_p});
}

double log_probability(std::span<const double> logits_v, int64_t token) {
  const double largest = *std::max_element(logits_v.begin(), logits_v.end());
  const auto add = [&](double sum, double logit) { return sum + std::exp(logit - largest); };
  return logits_v[static_cast<size_t>(token)] - largest - std::log(std::accumulate(logits_v.begin(), logits_v.end(), 0.0, add));
}

// The weights are summed as they are, which needs no order, and only where rounding may decide, from the largest on.
int64_t draw_token(std::span<const double> logits_v, const Sampling& sampling, uint64_t index, uint64_t sample) {
  if (sampling.temperature == 0) return most_probable(logits_v);
  Ranking ranking(logits_v, sampling);
  const double uniform = Philox{sampling.seed, sample}.uniform_f64(index), total = ranking.sum_of_weights();
  constexpr double kRoundingsOfTerm = 8;  // two sums of n terms and n differences are each wrong by up to n roundings
  const double error = ranking.is_sorted() ? 0 : kRoundingsOfTerm * 0x1p-53 * static_cast<double>(ranking.size()) * total;
  if (const auto token = draw_from(ranking, sampling, uniform, total, error)) return *token;
  ranking.sort();
  return *draw_from(ranking, sampling, uniform, ranking.sum_of_weights(), 0);
}

}  // namespace ricci
