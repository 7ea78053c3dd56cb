#include "models/inference/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "autograd/tape.h"
#include "core/error.h"
#include "core/philox.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/layers.h"

namespace ricci {
namespace {

constexpr int64_t kMaxSamples = 65536;

struct Candidate {
  int64_t token;
  double logit;
};

// The tokens that can be sampled, most probable first; on a tie, in id order. Only the tokens that at() asks for are sorted: most samples
// are among the first, and sorting a full vocabulary takes longer than running a small model.
class Ranking {
 public:
  Ranking(std::span<const double> logits_v, const Sampling& s) : temperature_(s.temperature) {
    all_.reserve(logits_v.size());
    for (size_t v = 0; v < logits_v.size(); ++v)
      if (!std::isnan(logits_v[v])) all_.push_back({static_cast<int64_t>(v), logits_v[v]});
    if (all_.empty()) fail("sampling: every logit is NaN");
    max_ = std::max_element(all_.begin(), all_.end(), [](const Candidate& a, const Candidate& b) { return a.logit < b.logit; })->logit;
    const auto k = static_cast<size_t>(s.top_k);
    if (k == 0 || k >= all_.size()) return;
    sort_to(k);
    const double least = all_[k - 1].logit;
    std::erase_if(all_, [&](const Candidate& c) { return c.logit < least; });
  }

  size_t size() const { return all_.size(); }
  const Candidate& at(size_t rank) {
    if (rank >= sorted_) sort_to(std::max<size_t>(2 * rank, 64));
    return all_[rank];
  }
  double weight(const Candidate& c) const {
    return c.logit == max_ ? 1 : std::exp((c.logit - max_) / temperature_);
  }  // relative to the most probable token
  double total_weight() const {
    return std::accumulate(all_.begin(), all_.end(), 0.0, [this](double sum, const Candidate& c) { return sum + weight(c); });
  }

 private:
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

using Texts = std::vector<std::vector<int64_t>>;  // all of the same length

// The last `count` ids of every text.
Tensor last_ids(const Texts& texts_s, int64_t count, Device device) {
  const Tensor ids_sc({static_cast<int64_t>(texts_s.size()), count}, Dtype::i64);
  int64_t* row = ids_sc.data<int64_t>();
  for (const auto& text : texts_s) row = std::copy(text.end() - count, text.end(), row);
  return to(ids_sc, device);
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

int64_t draw_token(std::span<const double> logits_v, const Sampling& s, uint64_t index, uint64_t sample) {
  Ranking ranking(logits_v, s);
  if (s.temperature == 0) return ranking.at(0).token;
  size_t count = ranking.size();
  double total = ranking.total_weight();
  if (s.top_p < 1 || s.min_p > 0) {
    double sum = 0;
    for (count = 0; count < ranking.size() && (s.top_p == 1 || sum < s.top_p * total); ++count) {
      const double weight = ranking.weight(ranking.at(count));
      if (weight < s.min_p) break;
      sum += weight;
    }
    total = sum;
  }
  double left = Philox{s.seed, sample}.uniform_f64(index) * total;
  for (size_t rank = 0; rank + 1 < count; ++rank) {
    const Candidate& c = ranking.at(rank);
    if (left < ranking.weight(c)) return c.token;
    left -= ranking.weight(c);
  }
  return ranking.at(count - 1).token;
}

Continuation::Continuation(const Model& model, int64_t samples, const Sampling& sampling, Device device, int64_t context)
    : model_(model), sampling_(sampling), device_(device), context_(context) {
  check(sampling);
  if (model.config().traits().objective == Objective::next_cell)
    fail("generate: a coarse model cannot generate text; it predicts the next tokens without their order");
  if (samples < 1 || samples > kMaxSamples) fail("generate: samples is {}, expected 1 to {}", {samples, kMaxSamples});
  const int64_t most = model.config().ctx;
  if (context < 0 || context > most) fail("generate: the context is {}, expected 0 to {}", {context, most});
  if (context == 0) context_ = most;
  texts_s_.resize(static_cast<size_t>(samples));
}

Continuation::~Continuation() = default;

void Continuation::append(std::span<const int64_t> ids) {
  for (auto& text : texts_s_) text.insert(text.end(), ids.begin(), ids.end());
  unread_ += static_cast<int64_t>(ids.size());
}

void Continuation::draw(int64_t count, const UseOfToken& use) {
  if (texts_s_[0].empty()) fail("generate: the prompt is empty");
  const NoTape unrecorded;
  const Training off(false);
  std::vector<bool> unfinished_s(texts_s_.size(), true);
  auto unfinished = static_cast<int64_t>(texts_s_.size());
  for (int64_t i = 0; i < count && unfinished > 0; ++i) {
    if (!state_ || read_ + unread_ > context_) {  // starts, or processes the second half of a full context again
      const int64_t wanted = state_ ? std::max((context_ + 1) / 2, unread_) : context_;
      unread_ = std::min({static_cast<int64_t>(texts_s_[0].size()), wanted, context_});
      state_ = model_.init_state(static_cast<int64_t>(texts_s_.size()));
      read_ = 0;
    }
    const Tensor logits_sv = to(convert(model_.advance(last_ids(texts_s_, unread_, device_), *state_), Dtype::f64), Device::cpu);
    read_ += unread_;
    unread_ = 1;
    const size_t vocab = static_cast<size_t>(logits_sv.size()) / texts_s_.size(),
                 drawable = sampling_.vocab > 0 ? std::min(vocab, static_cast<size_t>(sampling_.vocab)) : vocab;
    for (size_t s = 0; s < texts_s_.size(); ++s) {
      // All texts of a batch have the same length, so finished texts are continued and their tokens are ignored.
      const std::span<const double> logits_v(logits_sv.data<double>() + s * vocab, vocab);
      texts_s_[s].push_back(draw_token(logits_v.first(drawable), sampling_, static_cast<uint64_t>(drawn_), s));
      if (unfinished_s[s] && !use(static_cast<int64_t>(s), texts_s_[s].back(), logits_v)) {
        unfinished_s[s] = false;
        --unfinished;
      }
    }
    ++drawn_;
  }
}

void generate(const Model& model, std::span<const int64_t> prompt, int64_t count, const Sampling& sampling, Device device,
    const std::function<bool(int64_t)>& use, int64_t context) {
  Continuation text(model, 1, sampling, device, context);
  text.append(prompt);
  text.draw(count, [&](int64_t, int64_t token, auto) { return use(token); });
}

}  // namespace ricci
