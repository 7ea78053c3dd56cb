// Texts, token by token: the logits after the last position, a draw, and on.
#include <algorithm>
#include <memory>

#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/inference/sampling.h"
#include "models/layers/layers.h"

namespace ricci {
namespace {

// The rows of a matrix as f64, one after the other.
std::vector<double> values_of(const Tensor& logits_sv) {
  const Tensor host = to(convert(logits_sv, Dtype::f64), Device::cpu);
  return {host.data<double>(), host.data<double>() + host.size()};
}

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

void generate_samples(const Model& model, std::span<const int64_t> prompt, int64_t samples, int64_t count, const Sampling& sampling,
    Device device, const std::function<bool(int64_t sample, int64_t token)>& use, int64_t context) {
  check(sampling);
  if (model.config().traits().objective == Objective::next_cell)
    fail("generate: a coarse model says which tokens come next, but not in which order");
  if (prompt.empty()) fail("generate: the prompt is empty");
  check_samples(samples);
  const int64_t most = model.config().ctx;
  if (context < 0 || context > most) fail("generate: a context of {}, expected 0 to {}", {context, most});
  if (context == 0) context = most;
  const NoTape unrecorded;
  const Training off(false);
  Texts texts_s(static_cast<size_t>(samples), {prompt.begin(), prompt.end()});
  std::vector<bool> goes_on_s(texts_s.size(), true);
  int64_t going = samples;
  std::unique_ptr<DecodingState> state;
  int64_t read = 0;  // positions in the state; everything of the texts when there is one
  for (int64_t i = 0; i < count && going > 0; ++i) {
    int64_t news = 1;
    if (!state || read == context) {
      news = std::min<int64_t>(static_cast<int64_t>(texts_s[0].size()), state ? (context + 1) / 2 : context);
      state = model.init_state(samples);
      read = 0;
    }
    const std::vector<double> logits_sv = values_of(model.advance(last_ids(texts_s, news, device), *state));
    read += news;
    const size_t vocab = logits_sv.size() / texts_s.size(),
                 drawn = sampling.pieces > 0 ? std::min(vocab, static_cast<size_t>(sampling.pieces)) : vocab;
    for (size_t s = 0; s < texts_s.size(); ++s) {
      // A text that has ended goes on in silence, beside the others.
      const auto sample = static_cast<int64_t>(s);
      texts_s[s].push_back(draw_token({logits_sv.data() + s * vocab, drawn}, sampling, static_cast<uint64_t>(i), static_cast<uint64_t>(s)));
      if (goes_on_s[s] && !use(sample, texts_s[s].back())) {
        goes_on_s[s] = false;
        --going;
      }
    }
  }
}

void generate(const Model& model, std::span<const int64_t> prompt, int64_t count, const Sampling& sampling, Device device,
    const std::function<bool(int64_t)>& use, int64_t context) {
  generate_samples(
      model, prompt, 1, count, sampling, device, [&](int64_t, int64_t token) { return use(token); }, context);
}

}  // namespace ricci
