// y_i  = x_i m_i,    m_i = 1/(1-p) if word i of the random stream is at least 2^32 p, else 0
// dx_i = dy_i m_i
// The backward pass computes m again; keeping m would need a tensor of the size of x. A random block is four words, so a thread computes
// four adjacent elements.
//   bytes   8 N for N numbers in f32, 4 N in bf16, each way; about 25 N integer operations for the random words
//   floor   65,536 rows of 768 in bf16 on an H200: 0.20 GB at 4.8 TB/s 0.04 ms each way
#include "ops/elements/dropout.h"

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

// The generator, and the memory that holds its stream. A kernel of a recorded CUDA graph reads the stream at each launch, for new numbers
// each time. The CPU reads it before the loop, so the loop can be vectorised.
struct Drawn : Philox {
  PhiloxSource source;
  Drawn(const PhiloxSource& source, Device device) : Philox(device == Device::cpu ? source.philox() : Philox{}), source(source) {}
};

// Processes kCount adjacent elements: 4 aligned elements, loaded and stored together, or 1.
template <class T, int kCount> struct Apply {
  using A = Accumulator<T>;
  struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Neighbours {
    T v[kCount];
  };
  const T* x;
  T* y;
  Drawn random;
  uint64_t first;  // the word of x[0], a multiple of kCount
  uint32_t least;
  A scale;

  HD Apply on_gpu() const {
    Apply apply = *this;
    static_cast<Philox&>(apply.random) = random.source.philox();
    return apply;
  }
  HD void operator()(int64_t i) const {
    const uint64_t number = first / kCount + static_cast<uint64_t>(i);  // the number of a block, or of a word
    const Philox::Block words = kCount == 4 ? random.block(number) : Philox::Block{{random.bits(number)}};
    Neighbours all = reinterpret_cast<const Neighbours*>(x)[i];
    for (int k = 0; k < kCount; ++k) all.v[k] = T(A(all.v[k]) * (words.v[k] >= least ? scale : A(0)));
    reinterpret_cast<Neighbours*>(y)[i] = all;
  }
};
template <class T> using ApplyFour = Apply<T, 4>;
template <class T> using ApplyOne = Apply<T, 1>;

HOST Tensor apply(const char* name, const Tensor& x, const Mask& mask) {
  Tensor y = like(x);
  with_dtype(x, [&]<class T>(T) {
    const T* source = x.data<T>();
    T* target = y.data<T>();
    const Drawn random(mask.random, x.device());
    const Accumulator<T> scale(mask.scale);
    const bool aligned = reinterpret_cast<uintptr_t>(source) % alignof(typename ApplyFour<T>::Neighbours) == 0 && mask.first % 4 == 0;
    const int64_t n = x.size(), fours = aligned ? n / 4 : 0, rest = fours * 4;
    for_each_element(name, x.device(), fours, ApplyFour<T>{source, target, random, mask.first, mask.least, scale});
    for_each_element(name, x.device(), n - rest,
        ApplyOne<T>{source + rest, target + rest, random, mask.first + static_cast<uint64_t>(rest), mask.least, scale});
  });
  return y;
}

}  // namespace dropout_kernels

using namespace dropout_kernels;

HOST Tensor dropout(const Arg& x, double p) {
  DIMS(x);
  if (!(p >= 0 && p < 1)) fail("dropout: p is {}, expected 0 or more and less than 1", {p});
  const Mask mask{
      take_stream(), random_state().micro_batch * static_cast<uint64_t>(x.size()), static_cast<uint32_t>(p * 0x1p32), 1 / (1 - p)};
  return record("dropout", {x}, apply("dropout", x, mask), keep(mask),
      [](const Tensor& dy, const Mask& mask) -> Grads { return {apply("dropout'", dy, mask)}; });
}

CUDA_ELEMENTS(ApplyFour);
CUDA_ELEMENTS(ApplyOne);

}  // namespace ricci
