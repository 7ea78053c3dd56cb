// The mutation test's way in: a build with RICCI_MUTATION (the builds with tests) can be told to spoil one returned
// gradient, so that a gradient check that still passes is caught. In every other build this is nothing.
#pragma once
#include <cstddef>

#include "core/tensor.h"

namespace ricci {

#ifdef RICCI_MUTATION

// Which gradient is multiplied by 1.01: that of input `input` of op `op`. Null: none.
void set_mutation(const char* op, size_t input);
bool mutation_happened();  // since the last set_mutation
// Called by the tape for every gradient that a backward returned.
void mutate_gradient(const char* op, size_t input, Tensor& gradient);

#else

inline void mutate_gradient(const char*, size_t, const Tensor&) {}

#endif

}  // namespace ricci
