// The learning rate as a function of the step, counted from 0. The rate warms up while Adam's moments are means over few gradients. Its
// fall stops the weights from jumping around the minimum.
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
#include <optional>

#include "core/choice.h"
#include "core/fields.h"

namespace ricci {

struct Schedule {
  enum class Kind : uint8_t { cosine, linear, constant, inverse_sqrt, wsd } kind = Kind::cosine;
  double lr = 1e-3, min_lr = 1e-4;
  int64_t warmup = 100;
  double decay_fraction = 0.2;
  std::optional<int64_t> steps = {};  // last step of the schedule; by default, the value of `steps` at the start of the run

  // True if the rate depends on the last step.
  bool ends() const { return kind == Kind::cosine || kind == Kind::linear || kind == Kind::wsd; }

  // The learning rate of a step. The schedule ends at step `last`.
  double rate(int64_t step, int64_t last) const {
    const double t = static_cast<double>(step), w = static_cast<double>(warmup), end = static_cast<double>(last);
    if (step < warmup) return lr * (t + 1) / (w + 1);
    switch (kind) {
      case Kind::constant: return lr;
      case Kind::linear: return toward_min(done(t, w, end));
      case Kind::cosine: return min_lr + (lr - min_lr) * (1 + std::cos(std::numbers::pi * done(t, w, end))) / 2;
      case Kind::inverse_sqrt: return std::max(min_lr, lr * std::sqrt((w + 1) / (t + 1)));
      case Kind::wsd: return toward_min(done(t, std::max(w, end - decay_fraction * end), end));
    }
    return lr;
  }

 private:
  // The fraction of the way from `begin` to `end` at t, 0 to 1.
  static double done(double t, double begin, double end) {
    if (t < begin) return 0;
    return t >= end ? 1 : (t - begin) / (end - begin);
  }
  double toward_min(double p) const { return lr + p * (min_lr - lr); }
};

constexpr auto choices(Schedule::Kind) { return std::array{"cosine", "linear", "constant", "inverse_sqrt", "wsd"}; }

inline void visit_fields(Schedule& c, const Fields& field) {
  field("schedule", c.kind, "how the rate falls from lr to min_lr after the warm-up (constant: never; wsd: only at the end)").decides();
  field("lr", c.lr, "highest learning rate").positive();
  const Fields falling = field.when(c.kind != Schedule::Kind::constant, "schedule: cosine, linear, inverse_sqrt, wsd");
  falling("min_lr", c.min_lr, "learning rate at the end of the schedule").at_least(0);
  const Fields ending = field.when(c.ends(), "schedule: cosine, linear, wsd");
  ending("schedule_steps", c.steps, "last step of the schedule, even if `steps` is raised later (null: `steps` at the start of the run)")
      .at_least(1)
      .may_change();
  field("warmup", c.warmup, "number of warm-up steps: the learning rate rises linearly to lr").at_least(0);
  const Fields wsd = field.when(c.kind == Schedule::Kind::wsd, "schedule: wsd");
  wsd("decay_fraction", c.decay_fraction, "fraction of the steps, at the end, that lower the learning rate").within({0, 1});
}

}  // namespace ricci
