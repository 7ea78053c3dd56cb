// The shift-and-sum on the CPU. A task walks over the columns of a head in strips of one or more vectors. A strip stays in the cache: only
// its first walk (walk.h) reads the tensor, and only the last writes the result. Between walks, the strip has N rows for N positions, and
// in the backward pass R / 3 rows per position for R levels.
#include <algorithm>
#include <type_traits>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/cpu/vectors.h"
#include "core/memory/scratch.h"
#include "ops/shift_and_sum/kernels.h"
#include "ops/shift_and_sum/walk.h"

namespace ricci::shift_and_sum_kernels {
namespace {

// The first level of a walk; first_level(walks) is the number of levels. If levels % 3 != 0, the first walk has fewer levels. Its rows, in
// one long class, are the cheapest; later walks have many short classes.
HD int first_level(const Problem& problem, int walk) {
  const int later = kWalkLevels * (walks_of(problem.used) - walk);
  return problem.used > later ? problem.used - later : 0;
}

// One strip of columns of one head of one sequence: rows of kVectors vectors.
template <class T, int Bytes, int kVectors> struct Strip {
  using A = Accumulator<T>;
  static constexpr int kColumns = kVectors * Vectors<A, Bytes>::kLanes;
  Problem problem;
  uint32_t active;
  const T* c;
  int64_t sequence, head, column;

  HD int64_t columns() const { return problem.width - column < kColumns ? problem.width - column : kColumns; }
  HD int64_t in_tensor() const { return sequence * problem.positions * problem.d() + head * problem.width + column; }
  // Full rows of the accumulator type are read and written in place; others are copied.
  HD bool direct() const { return std::is_same_v<T, A> && columns() == kColumns; }
  template <class E, class Given> HD Row<E> rows(Given* tensor, A* memory) const {
    if constexpr (std::is_same_v<T, A>)
      if (direct()) return {tensor + in_tensor(), problem.d()};
    return {memory, kColumns};
  }
  HD Row<const A> input(const T* tensor, A* memory) const {
    for (int64_t i = 0; !direct() && i < problem.positions; ++i) {
      copy(tensor + in_tensor() + i * problem.d(), memory + i * kColumns, columns());
      for (int64_t x = columns(); x < kColumns; ++x) memory[i * kColumns + x] = 0;
    }
    return rows<const A>(tensor, memory);
  }
  HD void finish(T* tensor, const A* memory) const {
    for (int64_t i = 0; !direct() && i < problem.positions; ++i)
      copy(memory + i * kColumns, tensor + in_tensor() + i * problem.d(), columns());
  }
  template <class From, class To> HD static void copy(const From* from, To* target, int64_t n) {
#pragma omp simd
    for (int64_t x = 0; x < n; ++x) target[x] = To(from[x]);
  }

  // Calls body(m, q, the coefficients of class m from level q on, the active levels of the walk as bits, the number of rows)
  template <class Body> HD void each_class(int walk, const Body& body) const {
    const int q = first_level(problem, walk), levels = first_level(problem, walk + 1) - q;
    const Row<const T> of_head{c + (sequence * problem.positions * problem.heads + head) * problem.levels + q, problem.coefficients()};
    const int64_t classes = int64_t{1} << q;
    for (int64_t m = 0; m < std::min(classes, problem.positions); ++m)
      body(m, q, of_head.of_class(m, q), active >> q & ((1u << levels) - 1), (problem.positions - m + classes - 1) >> q);
  }
  HD void forward(int walk, const Row<const A>& source, const Row<A>& target) const {
    each_class(walk, [&](int64_t m, int q, const Row<const T>& of_class, uint32_t levels, int64_t rows) {
      ForwardWalk<T, Bytes, kVectors> along{source.of_class(m, q), target.of_class(m, q), of_class, levels};
      along.walk(rows);
    });
  }
  // dc are the sums of slice 0.
  HD void backward(int walk, const Row<const A>& values, const Row<const A>& source, const Row<A>& target, A* dc) const {
    const Row<A> sums{dc + partial_at(problem, 0, sequence, 0, head) + first_level(problem, walk), problem.heads * problem.used};
    each_class(walk, [&](int64_t m, int q, const Row<const T>& of_class, uint32_t levels, int64_t rows) {
      BackwardWalk<T, Bytes, kVectors> along{
          values.of_class(m, q), source.of_class(m, q), target.of_class(m, q), sums.of_class(m, q), of_class, levels};
      along.walk(rows);
    });
  }
};

// Slices of the columns of a head, of all sequences and heads. The forward pass has no dy and no sums, and each of its slices is a strip.
template <class T, int Bytes, bool kBackward> struct Task {
  using A = Accumulator<T>;
  static constexpr int kOfGradients = Bytes == 64 ? 1 : 2, kVectors = kBackward ? kOfGradients : 4;  // more vectors are slower
  using S = Strip<T, Bytes, kVectors>;
  Problem problem;
  uint32_t active;
  int64_t slices, strips_of_slice;
  const T *v, *c, *dy;
  T* result;
  A *partial, *memory;  // memory: a strip, and in the backward pass one more for each walk

  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t slice = n % slices, head = n / slices % problem.heads, sequence = n / slices / problem.heads;
      A* const dc = kBackward ? partial + partial_at(problem, slice, 0, 0, 0) : nullptr;
      for (int64_t i = 0; kBackward && i < problem.positions; ++i)
        for (int r = 0; r < problem.used; ++r) dc[partial_at(problem, 0, sequence, i, head) + r] = 0;
      for (int64_t s = slice * strips_of_slice; s < (slice + 1) * strips_of_slice; ++s)
        if (s * S::kColumns < problem.width) run({problem, active, c, sequence, head, s * S::kColumns}, dc);
    }
  }
  HD void run(const S& strip, A* dc) const {
    const int walks = walks_of(problem.used);
    const int64_t size = kBackward ? problem.positions * S::kColumns : 0;
    A* const after = memory + walks * size;
    const Row<const A> first = strip.input(v, memory);
    const auto values = [&](int w) { return w ? Row<const A>{memory + w * size, S::kColumns} : first; };
    for (int w = 0; w + 1 < walks; ++w) strip.forward(w, values(w), {memory + (w + 1) * size, S::kColumns});
    if constexpr (kBackward) {
      Row<const A> source = strip.input(dy, after);
      for (int w = walks - 1; w >= 0; --w) {
        const Row<A> target = w ? Row<A>{after, S::kColumns} : strip.template rows<A>(result, after);
        strip.backward(w, values(w), source, target, dc);
        source = {target.data, target.next};
      }
    } else {
      strip.forward(walks - 1, values(walks - 1), strip.template rows<A>(result, after));
    }
    strip.finish(result, after);
  }
};

template <bool kBackward>
void run(const Problem& problem, int64_t slices, const Tensor& v, const Tensor& c, const Tensor& dy, const Tensor& result,
    const Tensor& partial) {
  with_dtype(v, [&]<class T>(T) {
    with_vectors([&](auto bytes) {
      using Of = Task<T, bytes(), kBackward>;
      const int64_t strips = (problem.width + Of::S::kColumns - 1) / Of::S::kColumns, of_head = slices ? slices : strips;
      parallel_for_with_scratch(problem.batches * problem.heads * of_head, 1, [&](int64_t begin, int64_t end) {
        const Scratch<Accumulator<T>> memory((kBackward ? walks_of(problem.used) + 1 : 1) * problem.positions * Of::S::kColumns);
        run_with_vectors<bytes()>(
            Of{problem, problem.active(), of_head, (strips + of_head - 1) / of_head, v.data<T>(), c.data<T>(),
                kBackward ? dy.data<T>() : nullptr, result.data<T>(), kBackward ? partial.data<Accumulator<T>>() : nullptr, memory.data()},
            begin, end);
      });
    });
  });
}

}  // namespace

// Returns a number that gives every thread a few tasks. It depends only on the shape, and so does the order of the sums.
int64_t gradient_slices_cpu(const Problem& problem) {
  constexpr int64_t kTasks = 16, kColumns = 16;
  const int64_t heads = problem.batches * problem.heads;
  return std::max<int64_t>(1, std::min((kTasks + heads - 1) / heads, problem.width / kColumns));
}

void forward_cpu(const Problem& problem, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& y_bcd) {
  run<false>(problem, 0, v_bcd, coef_bcx, {}, y_bcd, {});
}

void backward_cpu(const Problem& problem, const Tensor& dy_bcd, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& dv_bcd,
    const Tensor& partial) {
  run<true>(problem, gradient_slices_cpu(problem), v_bcd, coef_bcx, dy_bcd, dv_bcd, partial);
}

}  // namespace ricci::shift_and_sum_kernels
