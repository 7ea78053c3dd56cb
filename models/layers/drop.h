// Whether dropout acts. Models run in evaluation mode unless a Training is alive on this thread.
#pragma once
#include "autograd/arg.h"
#include "ops/elements/dropout.h"

namespace ricci {

class Training {
 public:
  explicit Training(bool on = true) : outer_(active()) { active() = on; }
  ~Training() { active() = outer_; }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;
  static bool& active() {
    thread_local bool on = false;
    return on;
  }

 private:
  bool outer_;
};

// Dropout with probability p while training, x itself otherwise.
inline Tensor drop(const Arg& x, double p) { return Training::active() && p > 0 ? dropout(x, p) : Tensor(x); }

}  // namespace ricci
