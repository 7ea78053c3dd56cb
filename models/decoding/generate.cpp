// A text, token by token: what the model says of the last position, a draw, and on.
#include <algorithm>
#include <memory>

#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/decoding/sampling.h"
#include "models/drop.h"

namespace ricci {
namespace {

std::vector<double> values_of(const Tensor& logits_bv) {
  const Tensor host = to(convert(logits_bv, Dtype::f64), Device::cpu);
  return {host.data<double>(), host.data<double>() + host.size()};
}

Tensor ids_tensor(const std::vector<int64_t>& ids_c, Device device) {
  const Tensor ids_bc({1, static_cast<int64_t>(ids_c.size())}, Dtype::i64);
  std::copy(ids_c.begin(), ids_c.end(), ids_bc.data<int64_t>());
  return to(ids_bc, device);
}

}  // namespace

void generate(const Model& model, std::span<const int64_t> prompt, int64_t count, const Sampling& sampling, Device device,
              const std::function<bool(int64_t)>& use, int64_t context) {
  check(sampling);
  if (prompt.empty()) fail("generate: the prompt is empty");
  const int64_t most = model.config().ctx;
  if (context < 0 || context > most) fail("generate: a context of {}, expected 0 to {}", {context, most});
  if (context == 0) context = most;
  const NoTape unrecorded;
  const Training off(false);
  std::vector<int64_t> text(prompt.begin(), prompt.end());
  std::unique_ptr<DecodingState> state;
  int64_t read = 0;  // positions in the state; everything of the text when there is one
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> news(1, text.back());
    if (!state || read == context) {
      const int64_t kept = std::min<int64_t>(static_cast<int64_t>(text.size()), state ? (context + 1) / 2 : context);
      state = model.init_state(1);
      read = 0;
      news.assign(text.end() - kept, text.end());
    }
    const int64_t length = static_cast<int64_t>(news.size());
    const Tensor logits_bv = model.advance(ids_tensor(news, device), *state);
    read += length;
    text.push_back(draw_token(values_of(logits_bv), sampling, static_cast<uint64_t>(i)));
    if (!use(text.back())) return;
  }
}

}  // namespace ricci
