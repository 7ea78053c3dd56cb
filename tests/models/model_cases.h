// Shared by the tests of models: ids, models of drawn weights, decoding against the full forward.
#pragma once
#include <cmath>

#include "cuda/device/device.h"
#include "models/model.h"
#include "tests/ops/values.h"

namespace ricci {

// Ids below 11, one of them another where changed_at says so.
inline Tensor ids(int64_t batch, int64_t length, Device device, int64_t changed_at = -1) {
  const Tensor t({batch, length}, Dtype::i64);
  for (int64_t i = 0; i < t.size(); ++i) t.data<int64_t>()[i] = (i * 7 + i / 3) % 11;
  for (int64_t b = 0; b < batch && changed_at >= 0; ++b) {
    int64_t& id = t.data<int64_t>()[b * length + changed_at];
    id = (id + 1) % 11;
  }
  return to(t, device);
}

inline Model built(const ModelConfig& config, Device device, uint64_t seed = 3) {
  Model model(config);
  model.init(seed);
  model.place(Dtype::f64, device);
  return model;
}

// The largest |a - b| over elements, relative to the largest |b|.
inline double difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    raise_to(worst, std::abs(item(a, i) - item(b, i)));
    largest = std::fmax(largest, std::fabs(item(b, i)));
  }
  return worst / largest;
}

// The logits behind a prompt, which advance() returns alone.
inline Tensor prompt_logits(const Model& model, const Tensor& prompt_bc) {
  const auto state = model.init_state(prompt_bc.shape()[0]);
  return model.advance(prompt_bc, *state);
}

// Decoding with a cache gives the logits of the full forward at every position, whatever is read at once.
inline void check_decoding(const ModelConfig& config, Device device) {
  const Model model = built(config, device);
  const int64_t batch = 2, length = config.ctx, v = config.vocab;
  const Tensor tokens = ids(batch, length, device), full = model.logits({tokens});
  for (int64_t prompt : {int64_t{1}, int64_t{2}, int64_t{7}, length}) {
    const auto state = model.init_state(batch);
    Tensor first({batch, prompt}, Dtype::i64);
    const Tensor host = to(tokens, Device::cpu);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t t = 0; t < prompt; ++t) first.data<int64_t>()[b * prompt + t] = host.data<int64_t>()[b * length + t];
    const Tensor read = model.advance_all(to(first, device), *state);
    const Tensor last = prompt_logits(model, to(first, device));
    for (int64_t b = 0; b < batch; ++b)
      CHECK(difference(last.rows(b, 1), read.reshaped({batch * prompt, v}).rows(b * prompt + prompt - 1, 1)) < 1e-13);
    for (int64_t t = 0; t < length; ++t) {
      Tensor logits_bv;
      if (t >= prompt) {
        const Tensor next({batch}, Dtype::i64);
        for (int64_t b = 0; b < batch; ++b) next.data<int64_t>()[b] = host.data<int64_t>()[b * length + t];
        logits_bv = model.step(to(next, device), *state);
      }
      for (int64_t b = 0; b < batch; ++b) {
        const Tensor expected = full.reshaped({batch * length, v}).rows(b * length + t, 1);
        const Tensor got = t < prompt ? read.reshaped({batch * prompt, v}).rows(b * prompt + t, 1) : logits_bv.rows(b, 1);
        CHECK(difference(got, expected) < 1e-13);
      }
    }
  }
}

}  // namespace ricci
