// dropout:   y_i = x_i m_i,   m_i = 1/(1-p) where word i of the random stream is at least 2^32 p, and 0 elsewhere
//           dx_i = dy_i m_i,  with m made again instead of kept
// A random block has four words, so four neighbours are one unit of work.
//   bytes   8 N for N numbers in f32, 4 N in bf16, each way; about 25 N integer operations for the random words
//   floor   65,536 rows of 768 in bf16 on an H200: 0.20 GB at 4.8 TB/s 0.04 ms each way
#include "ops/elements/dropout.h"

#include "autograd/random.h"
#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/philox.h"
#include "cuda/verbs/elements.h"

namespace ricci {
namespace dropout_kernels {

struct Mask {
  PhiloxSource random;
  uint64_t first;  // the word of element 0
  uint32_t least;  // a word below it drops its element
  double scale;
};

// Four elements, aligned so that they are read and written together, or 16 bytes at a time where they are larger.
template <class T> struct alignas(sizeof(T) * 4 < 16 ? sizeof(T) * 4 : 16) Four { T v[4]; };

// The generator, and where its stream is found: a kernel of a recorded CUDA graph reads it from memory when it runs, so that
// each launch draws numbers of its own. The CPU reads it before its loop, which could not be vectorised otherwise.
struct Drawn : Philox {
  PhiloxSource source;
  Drawn(const PhiloxSource& source, Device device) : Philox(device == Device::cpu ? source.philox() : Philox{}), source(source) {}
};
template <class Apply> HD Apply with_source(Apply apply) {
  static_cast<Philox&>(apply.random) = apply.random.source.philox();
  return apply;
}

template <class T> struct ApplyFour {
  using A = Accumulator<T>;
  const Four<T>* x;
  Four<T>* y;
  Drawn random;
  uint64_t first_block;
  uint32_t least;
  A scale;
  HD ApplyFour on_gpu() const { return with_source(*this); }
  HD void operator()(int64_t i) const {
    const Philox::Block words = random.block(first_block + static_cast<uint64_t>(i));
    Four<T> four = x[i];
    for (int k = 0; k < 4; ++k) four.v[k] = T(A(four.v[k]) * (words.v[k] >= least ? scale : A(0)));
    y[i] = four;
  }
};

// The elements first .. first + n that are not part of a whole, aligned four.
template <class T> struct ApplyOne {
  using A = Accumulator<T>;
  const T* x;
  T* y;
  int64_t first;
  Drawn random;
  uint64_t first_word;
  uint32_t least;
  A scale;
  HD ApplyOne on_gpu() const { return with_source(*this); }
  HD void operator()(int64_t j) const {
    const int64_t i = first + j;
    y[i] = T(A(x[i]) * (random.bits(first_word + static_cast<uint64_t>(i)) >= least ? scale : A(0)));
  }
};

HOST Tensor apply(const char* name, const Tensor& x, const Mask& mask) {
  Tensor y = like(x);
  with_dtype(x, [&]<class T>(T) {
    using A = Accumulator<T>;
    const T* source = x.data<T>();
    T* target = y.data<T>();
    const bool aligned = reinterpret_cast<uintptr_t>(source) % alignof(Four<T>) == 0 && mask.first % 4 == 0;
    const Drawn random(mask.random, x.device());
    const int64_t n = x.size(), fours = aligned ? n / 4 : 0;
    for_each_element(name, x.device(), fours,
        ApplyFour<T>{reinterpret_cast<const Four<T>*>(source), reinterpret_cast<Four<T>*>(target), random, mask.first / 4, mask.least,
            A(mask.scale)});
    for_each_element(
        name, x.device(), n - fours * 4, ApplyOne<T>{source, target, fours * 4, random, mask.first, mask.least, A(mask.scale)});
  });
  return y;
}

}  // namespace dropout_kernels

using namespace dropout_kernels;

HOST Tensor dropout(const Arg& x, double p) {
  DIMS(x);
  if (!(p >= 0 && p < 1)) fail("dropout: the probability must be in [0, 1), got {}", {p});
  const Mask mask{
      take_stream(), random_state().micro_batch * static_cast<uint64_t>(x.size()), static_cast<uint32_t>(p * 0x1p32), 1 / (1 - p)};
  return record("dropout", {x}, apply("dropout", x, mask), keep(mask),
      [](const Tensor& dy, const Mask& mask) -> Grads { return {apply("dropout'", dy, mask)}; });
}

CUDA_ELEMENTS(ApplyFour);
CUDA_ELEMENTS(ApplyOne);

}  // namespace ricci
