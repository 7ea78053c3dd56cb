// The learning rate as a function of the step, counted from 0.
//   warm-up:  lr (step + 1) / (warmup + 1)                                        step < warmup
//   cosine:   min_lr + (lr - min_lr) (1 + cos(pi p)) / 2,  linear: lr + p (min_lr - lr),  constant: lr
//             p = (step - warmup) / (steps - warmup), at most 1
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

#include "core/error.h"

namespace ricci {

struct Schedule {
  enum class Kind : uint8_t { constant, linear, cosine } kind = Kind::cosine;
  double lr = 1e-3, min_lr = 1e-4;
  int64_t warmup = 0, steps = 0;

  double at(int64_t step) const {
    if (step < warmup) return lr * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
    const double p = steps > warmup ? std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(steps - warmup)) : 1.0;
    switch (kind) {
      case Kind::constant: return lr;
      case Kind::linear: return lr + p * (min_lr - lr);
      case Kind::cosine: return min_lr + (lr - min_lr) * (1 + std::cos(std::numbers::pi * p)) / 2;
    }
    return lr;
  }
};

inline Schedule::Kind parse_schedule(const std::string& name) {
  if (name == "constant") return Schedule::Kind::constant;
  if (name == "linear") return Schedule::Kind::linear;
  if (name == "cosine") return Schedule::Kind::cosine;
  fail("schedule: expected constant, linear or cosine, got '{}'", {name});
}

}  // namespace ricci
