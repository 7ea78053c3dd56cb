#pragma once
#include "core/tensor.h"
#include "ops/shapes/strided.h"

namespace ricci {

// to[...] = from[...] for tensors of one dtype (any), walked by s: s.stride[0] in from, s.stride[1] in to, in elements from
// the given starts. Not recorded on a tape.
void copy_strided(const char* name, const Tensor& from, int64_t from_start, const Tensor& to, int64_t to_start, const Strided<2>& s);

}  // namespace ricci
