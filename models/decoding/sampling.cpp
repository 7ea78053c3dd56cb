#include "models/decoding/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/philox.h"

namespace ricci {
namespace {

struct Candidate {
  int64_t token;
  double weight;
};

// The tokens that may be drawn, most probable first, with weights exp((l - max) / temperature). Equal logits keep the
// order of their ids.
std::vector<Candidate> candidates(std::span<const double> logits_v, const Sampling& s) {
  std::vector<Candidate> all;
  for (size_t v = 0; v < logits_v.size(); ++v)
    if (!std::isnan(logits_v[v])) all.push_back({static_cast<int64_t>(v), logits_v[v]});
  if (all.empty()) fail("sampling: every logit is NaN");
  const size_t k = s.temperature == 0 ? 1 : s.top_k > 0 ? std::min(all.size(), static_cast<size_t>(s.top_k)) : all.size();
  const auto before = [](const Candidate& a, const Candidate& b) { return a.weight != b.weight ? a.weight > b.weight : a.token < b.token; };
  if (k < all.size()) std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(k), all.end(), before);
  else std::sort(all.begin(), all.end(), before);
  all.resize(k);
  const double most = all.front().weight, temperature = s.temperature > 0 ? s.temperature : 1;
  for (Candidate& c : all) c.weight = c.weight == most ? 1 : std::exp((c.weight - most) / temperature);
  return all;
}

// Keeps the shortest head that has the share top_p of the weight.
void cut_nucleus(std::vector<Candidate>& all, double top_p) {
  if (top_p >= 1) return;
  const double total = std::accumulate(all.begin(), all.end(), 0.0, [](double sum, const Candidate& c) { return sum + c.weight; });
  double sum = 0;
  size_t kept = 0;
  while (kept < all.size() && sum < top_p * total) sum += all[kept++].weight;
  all.resize(std::max<size_t>(1, kept));
}

}  // namespace

void check(const Sampling& s) {
  if (!(s.temperature >= 0 && std::isfinite(s.temperature))) fail("temperature: expected 0 or more, got {}", {s.temperature});
  if (s.top_k < 0) fail("top-k: expected 0 or more, got {}", {s.top_k});
  if (!(s.top_p > 0 && s.top_p <= 1)) fail("top-p: expected more than 0 and at most 1, got {}", {s.top_p});
}

int64_t draw_token(std::span<const double> logits_v, const Sampling& sampling, uint64_t index, uint64_t sample) {
  std::vector<Candidate> all = candidates(logits_v, sampling);
  cut_nucleus(all, sampling.top_p);
  double total = 0;
  for (const Candidate& c : all) total += c.weight;
  double left = Philox{sampling.seed, sample}.uniform_f64(index) * total;
  for (const Candidate& c : all) {
    if (left < c.weight) return c.token;
    left -= c.weight;
  }
  return all.back().token;
}

}  // namespace ricci
