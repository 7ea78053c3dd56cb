// Texts, token by token: the logits after the last position, a draw, and on.
#include <algorithm>

#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/inference/sampling.h"
#include "models/layers/layers.h"

namespace ricci {
namespace {

using Texts = std::vector<std::vector<int64_t>>;  // the same number of ids in each

// The last `count` ids of every text.
Tensor last_ids(const Texts& texts_s, int64_t count, Device device) {
  const Tensor ids_sc({static_cast<int64_t>(texts_s.size()), count}, Dtype::i64);
  int64_t* row = ids_sc.data<int64_t>();
  for (const auto& text : texts_s) row = std::copy(text.end() - count, text.end(), row);
  return to(ids_sc, device);
}

}  // namespace

void check_samples(int64_t samples) {
  if (samples < 1 || samples > kMaxSamples) fail("generate: {} samples, expected 1 to {}", {samples, kMaxSamples});
}

Continuation::Continuation(const Model& model, int64_t samples, const Sampling& sampling, Device device, int64_t context)
    : model_(model), sampling_(sampling), device_(device), context_(context) {
  check(sampling);
  if (model.config().traits().objective == Objective::next_cell)
    fail("generate: a coarse model predicts which tokens come next, but not in which order");
  check_samples(samples);
  const int64_t most = model.config().ctx;
  if (context < 0 || context > most) fail("generate: a context of {}, expected 0 to {}", {context, most});
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
  std::vector<bool> goes_on_s(texts_s_.size(), true);
  auto going = static_cast<int64_t>(texts_s_.size());
  for (int64_t i = 0; i < count && going > 0; ++i) {
    if (!state_ || read_ + unread_ > context_) {  // a full context: its later half is read again
      const int64_t wanted = state_ ? std::max((context_ + 1) / 2, unread_) : context_;
      unread_ = std::min({static_cast<int64_t>(texts_s_[0].size()), wanted, context_});
      state_ = model_.init_state(static_cast<int64_t>(texts_s_.size()));
      read_ = 0;
    }
    const Tensor logits_sv = to(convert(model_.advance(last_ids(texts_s_, unread_, device_), *state_), Dtype::f64), Device::cpu);
    read_ += unread_;
    unread_ = 1;
    const size_t vocab = static_cast<size_t>(logits_sv.size()) / texts_s_.size(),
                 pieces = sampling_.pieces > 0 ? std::min(vocab, static_cast<size_t>(sampling_.pieces)) : vocab;
    for (size_t s = 0; s < texts_s_.size(); ++s) {
      // A text that has ended goes on in silence, beside the others.
      const std::span<const double> logits_v(logits_sv.data<double>() + s * vocab, vocab);
      texts_s_[s].push_back(draw_token(logits_v.first(pieces), sampling_, static_cast<uint64_t>(drawn_), s));
      if (goes_on_s[s] && !use(static_cast<int64_t>(s), texts_s_[s].back(), logits_v)) {
        goes_on_s[s] = false;
        --going;
      }
    }
    ++drawn_;
  }
}

void generate_samples(const Model& model, std::span<const int64_t> prompt, int64_t samples, int64_t count, const Sampling& sampling,
    Device device, const UseOfToken& use, int64_t context) {
  Continuation texts(model, samples, sampling, device, context);
  texts.append(prompt);
  texts.draw(count, use);
}

void generate(const Model& model, std::span<const int64_t> prompt, int64_t count, const Sampling& sampling, Device device,
    const std::function<bool(int64_t)>& use, int64_t context) {
  generate_samples(
      model, prompt, 1, count, sampling, device, [&](int64_t, int64_t token, auto) { return use(token); }, context);
}

}  // namespace ricci
