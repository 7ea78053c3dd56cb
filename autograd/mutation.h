// The mutation test's way in. A build with RICCI_MUTATION (the builds with tests) can spoil one returned gradient on request, so that a
// gradient check that still passes is caught, or make one of the classic mistakes of training on several ranks. In every other build this
// is nothing.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

#ifdef RICCI_MUTATION
#include <string>

#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#endif

namespace ricci {

// Mistakes of training on several ranks that a test must notice.
enum class Bug : uint8_t { none, early_bucket, swapped_sums, block_owned_twice, own_norm, micro_batch_twice, own_weights };

#ifdef RICCI_MUTATION

inline Bug planted_bug = Bug::none;
inline bool is_planted(Bug bug) { return planted_bug == bug; }

// Names the gradient that is multiplied by 1.01, by the op and the number of its input.
struct Mutation {
  std::string op;
  size_t input = 0;
  bool happened = false;
};
inline Mutation mutation;

// Called by the tape for every gradient that a backward returned.
inline void mutate_gradient(const char* op, size_t input, Tensor& gradient) {
  if (mutation.op != op || mutation.input != input) return;
  mutation.happened = true;
  Tensor spoilt = like(gradient);
  copy(spoilt, gradient);
  multiply_by(spoilt, 1.01);
  gradient = spoilt;
}

#else

static constexpr bool is_planted(Bug) { return false; }  // static: another function than the one above

inline void mutate_gradient(const char*, size_t, const Tensor&) {}

#endif

}  // namespace ricci
