// The learning rate as a function of the step, counted from 0.
//   warm-up:       lr (step + 1) / (warmup + 1)                                                 step < warmup, all kinds
//   constant:      lr
//   linear:        lr + p (min_lr - lr),    cosine: min_lr + (lr - min_lr) (1 + cos(pi p)) / 2
//                  p = (step - warmup) / (steps - warmup), at most 1
//   inverse_sqrt:  lr sqrt((warmup + 1) / (step + 1)), at least min_lr                          Vaswani et al. 2017
//   wsd:           lr, and over the last decay_fraction of all steps linearly to min_lr         warm-up, stable, decay:
//                                                                                               Hu et al. 2024 (MiniCPM)
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

#include "core/error.h"

namespace ricci {

struct Schedule {
  enum class Kind : uint8_t { constant, linear, cosine, inverse_sqrt, wsd } kind = Kind::cosine;
  double lr = 1e-3, min_lr = 1e-4;
  int64_t warmup = 0, steps = 0;
  double decay_fraction = 0.2;

  double at(int64_t step) const {
    const double t = static_cast<double>(step), w = static_cast<double>(warmup), end = static_cast<double>(steps);
    if (step < warmup) return lr * (t + 1) / (w + 1);
    switch (kind) {
      case Kind::constant: return lr;
      case Kind::linear: return toward_min(part(t, w, end));
      case Kind::cosine: return min_lr + (lr - min_lr) * (1 + std::cos(std::numbers::pi * part(t, w, end))) / 2;
      case Kind::inverse_sqrt: return std::max(min_lr, lr * std::sqrt((w + 1) / (t + 1)));
      case Kind::wsd: return toward_min(part(t, std::max(w, end - decay_fraction * end), end));
    }
    return lr;
  }

 private:
  // How much of the way from `begin` to `end` is done at t.
  static double part(double t, double begin, double end) { return t < begin ? 0 : t >= end ? 1 : (t - begin) / (end - begin); }
  double toward_min(double p) const { return lr + p * (min_lr - lr); }
};

inline Schedule::Kind parse_schedule(const std::string& name) {
  if (name == "constant") return Schedule::Kind::constant;
  if (name == "linear") return Schedule::Kind::linear;
  if (name == "cosine") return Schedule::Kind::cosine;
  if (name == "inverse_sqrt") return Schedule::Kind::inverse_sqrt;
  if (name == "wsd") return Schedule::Kind::wsd;
  fail("schedule: expected constant, linear, cosine, inverse_sqrt or wsd, got '{}'", {name});
}

}  // namespace ricci
