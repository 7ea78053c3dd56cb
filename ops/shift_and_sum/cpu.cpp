// The shift-and-sum on the CPU. A task takes columns of a head in strips of one vector. The first walk (walk.h) over a strip
// reads the tensor, the last writes the result, and what is between stays in the cache: N vectors for N positions, and in the
// backward R / 3 vectors for each position, with R levels.
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

// Rows of whole vectors, `row` numbers apart.
template <class A> struct Rows {
  A* first;
  int64_t row;
};

// Walks of three levels each. If levels % 3 != 0 the first walk takes the rest: it has one long class, so it is the cheapest per
// row. Later walks have many short classes, whose rows cost most.
HD int walks_of(const Problem& problem) { return problem.used > kWalkLevels ? (problem.used + kWalkLevels - 1) / kWalkLevels : 1; }
// first_level(walks) is the number of levels, so that level counts are differences.
HD int first_level(const Problem& problem, int walk) {
  const int later = kWalkLevels * (walks_of(problem) - walk);
  return problem.used > later ? problem.used - later : 0;
}

// The numbers that the walks read and write: a class of positions in a strip.
template <class T, int Bytes> struct WalkRows {
  using A = Accumulator<T>;
  using Of = Vectors<A, Bytes>;
  using V = typename Of::Vector;
  using Stored = typename Of::Stored;
  Rows<const A> of_values;
  Rows<A> result;
  const T* c;
  int64_t c_row;
  uint32_t active_levels;
  Rows<const A> of_gradients{};
  Rows<A> dc{};

  HD const A* values(int64_t i) const { return fetched(of_values.first + i * of_values.row); }
  HD const A* gradients(int64_t i) const { return fetched(of_gradients.first + i * of_gradients.row); }
  HD A coefficient(int64_t i, int l) const { return A(c[i * c_row + l]); }
  HD bool active(int l) const { return active_levels >> l & 1; }
  HD void store(int64_t i, const V& v) const { Of::store(fetched(result.first + i * result.row), v); }
  HD void add(int64_t i, int l, const V& g, const V& v) const {
    if (active(l)) dc.first[i * dc.row + l] += Of::sum(g * v);
  }

 private:
  // In a tensor the next strip is beside this one. It is fetched now: its rows are too far apart for the processor to guess.
  template <class Row> HD static Row* fetched(Row* row) {
    __builtin_prefetch(row + Of::kLanes);
    return row;
  }
};

// One strip of columns of one head of one sequence.
template <class T, int Bytes> struct Strip {
  using A = Accumulator<T>;
  static constexpr int kLanes = Vectors<A, Bytes>::kLanes;
  Problem problem;
  uint32_t active;
  const T* c;
  int64_t sequence, head, column;

  HD int64_t lanes() const { return problem.width - column < kLanes ? problem.width - column : kLanes; }
  HD int64_t in_tensor() const { return sequence * problem.positions * problem.d() + head * problem.width + column; }
  // Whole vectors of the type that sums are held in are read and written where they are; others are copied.
  HD bool direct() const { return std::is_same_v<T, A> && lanes() == kLanes; }
  HD static Rows<A> scratch(A* memory) { return {memory, kLanes}; }

  HD Rows<const A> input(const T* tensor, A* memory) const {
    if constexpr (std::is_same_v<T, A>)
      if (direct()) return {tensor + in_tensor(), problem.d()};
    for (int64_t i = 0; i < problem.positions; ++i)
      for (int64_t x = 0; x < kLanes; ++x) memory[i * kLanes + x] = x < lanes() ? A(tensor[in_tensor() + i * problem.d() + x]) : A(0);
    return {memory, kLanes};
  }
  HD Rows<A> output(T* tensor, A* memory) const {
    if constexpr (std::is_same_v<T, A>)
      if (direct()) return {tensor + in_tensor(), problem.d()};
    return scratch(memory);
  }
  HD void finish(T* tensor, const A* memory) const {
    if (direct()) return;
    for (int64_t i = 0; i < problem.positions; ++i)
      for (int64_t x = 0; x < lanes(); ++x) tensor[in_tensor() + i * problem.d() + x] = T(memory[i * kLanes + x]);
  }

  template <class E> HD static Rows<E> of_class(const Rows<E>& rows, int64_t m, int64_t step) {
    return {rows.first + m * rows.row, rows.row * step};
  }
  HD WalkRows<T, Bytes> rows_of(int walk, int64_t m, const Rows<const A>& values, const Rows<A>& target) const {
    const int q = first_level(problem, walk), levels = first_level(problem, walk + 1) - q;
    const int64_t step = int64_t{1} << q, position = sequence * problem.positions + m;
    return {of_class(values, m, step), of_class(target, m, step), c + (position * problem.heads + head) * problem.levels + q,
        problem.coefficients() * step, active >> q & ((1u << levels) - 1)};
  }
  HD int64_t step_of(int walk) const { return int64_t{1} << first_level(problem, walk); }  // between the positions of a class
  // The number of rows in the class of position m.
  HD int64_t rows(int walk, int64_t m) const {
    const int64_t step = step_of(walk);
    return m < problem.positions ? (problem.positions - m + step - 1) / step : 0;
  }

  HD void forward(int walk, const Rows<const A>& source, const Rows<A>& target) const {
    for (int64_t m = 0; m < step_of(walk); ++m) {
      const auto io = rows_of(walk, m, source, target);
      const int64_t n = rows(walk, m);
      ForwardWalk<WalkRows<T, Bytes>> along;
      along.begin();
      for (int64_t i = 0; i < n; i += kWalkRows) along.template block<true>(io, i, n - i);
    }
  }
  // dc are the sums of slice 0.
  HD void backward(int walk, const Rows<const A>& values, const Rows<const A>& source, const Rows<A>& target, A* dc) const {
    for (int64_t m = 0; m < step_of(walk); ++m) {
      const int64_t n = rows(walk, m), step = step_of(walk), last = (n - 1) / kWalkRows * kWalkRows;
      if (n == 0) return;
      auto io = rows_of(walk, m, values, target);
      io.of_gradients = of_class(source, m, step);
      io.dc = {dc + partial_at(problem, 0, sequence, m, head) + first_level(problem, walk), problem.heads * problem.used * step};
      BackwardWalk<WalkRows<T, Bytes>> along;
      along.begin();
      along.template block<false>(io, last + kWalkRows, n);
      for (int64_t i = last; i >= 0; i -= kWalkRows) along.template block<true>(io, i, n);
    }
  }
};

int64_t strips_of(const Problem& problem, int64_t lanes) { return (problem.width + lanes - 1) / lanes; }

template <class T, int Bytes> struct ForwardTask {
  using A = Accumulator<T>;
  using S = Strip<T, Bytes>;
  Problem problem;
  uint32_t active;
  int walks;
  const T *v, *c;
  T* y;
  A* memory;  // one strip

  // Strip n of all: the strips of a head follow each other.
  HD void operator()(int64_t begin, int64_t end) const {
    const int64_t strips = (problem.width + S::kLanes - 1) / S::kLanes;
    for (int64_t n = begin; n < end; ++n) {
      const S strip{problem, active, c, n / strips / problem.heads, n / strips % problem.heads, n % strips * S::kLanes};
      Rows<const A> source = strip.input(v, memory);
      for (int w = 0; w < walks; ++w) {
        const Rows<A> target = w + 1 < walks ? strip.scratch(memory) : strip.output(y, memory);
        strip.forward(w, source, target);
        source = {target.first, target.row};
      }
      strip.finish(y, memory);
    }
  }
};

template <class T, int Bytes> struct BackwardTask {
  using A = Accumulator<T>;
  using S = Strip<T, Bytes>;
  Problem problem;
  uint32_t active;
  int walks;
  const T *dy, *v, *c;
  T* dv;
  A *partial, *memory;  // memory: walks + 1 strips
  int64_t slices, strips_of_slice;

  // Slice n of the columns of a head, of all sequences and heads.
  HD void operator()(int64_t begin, int64_t end) const {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t slice = n % slices, head = n / slices % problem.heads, sequence = n / slices / problem.heads;
      A* const dc = partial + partial_at(problem, slice, 0, 0, 0);
      for (int64_t i = 0; i < problem.positions; ++i)
        for (int r = 0; r < problem.used; ++r) dc[partial_at(problem, 0, sequence, i, head) + r] = 0;
      for (int64_t s = slice * strips_of_slice; s < (slice + 1) * strips_of_slice; ++s)
        if (s * S::kLanes < problem.width) run({problem, active, c, sequence, head, s * S::kLanes}, dc);
    }
  }

  // The values before walk w are in strip w of the memory, the gradient in the last.
  HD void run(const S& strip, A* dc) const {
    const int64_t size = problem.positions * S::kLanes;
    const Rows<const A> first = strip.input(v, memory);
    const auto values = [&](int w) { return w ? Rows<const A>{memory + w * size, S::kLanes} : first; };
    for (int w = 0; w + 1 < walks; ++w) strip.forward(w, values(w), strip.scratch(memory + (w + 1) * size));
    A* const gradient = memory + walks * size;
    Rows<const A> source = strip.input(dy, gradient);
    for (int w = walks - 1; w >= 0; --w) {
      const Rows<A> target = w ? strip.scratch(gradient) : strip.output(dv, gradient);
      strip.backward(w, values(w), source, target, dc);
      source = {target.first, target.row};
    }
    strip.finish(dv, gradient);
  }
};

}  // namespace

// Some tasks for every thread; a function of the shape alone, as the order of the sums depends on it.
int64_t gradient_slices_cpu(const Problem& problem) {
  constexpr int64_t kTasks = 16, kColumns = 16;
  const int64_t heads = problem.batches * problem.heads;
  return std::max<int64_t>(1, std::min((kTasks + heads - 1) / heads, problem.width / kColumns));
}

void forward_cpu(const Problem& problem, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& y_bcd) {
  with_dtype(v_bcd, [&]<class T>(T) {
    with_vectors([&](auto bytes) {
      using Task = ForwardTask<T, bytes()>;
      constexpr int64_t kLanes = Task::S::kLanes;
      parallel_for_with_scratch(problem.batches * problem.heads * strips_of(problem, kLanes), 1, [&](int64_t begin, int64_t end) {
        const Scratch<Accumulator<T>> memory(problem.positions * kLanes);
        run_with_vectors<bytes()>(
            Task{problem, problem.active(), walks_of(problem), v_bcd.data<T>(), coef_bcx.data<T>(), y_bcd.data<T>(), memory.data()}, begin,
            end);
      });
    });
  });
}

void backward_cpu(const Problem& problem, const Tensor& dy_bcd, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& dv_bcd,
    const Tensor& partial) {
  with_dtype(v_bcd, [&]<class T>(T) {
    with_vectors([&](auto bytes) {
      using Task = BackwardTask<T, bytes()>;
      constexpr int64_t kLanes = Task::S::kLanes;
      const int64_t slices = gradient_slices_cpu(problem), strips = strips_of(problem, kLanes);
      parallel_for_with_scratch(problem.batches * problem.heads * slices, 1, [&](int64_t begin, int64_t end) {
        const Scratch<Accumulator<T>> memory((walks_of(problem) + 1) * problem.positions * kLanes);
        run_with_vectors<bytes()>(
            Task{problem, problem.active(), walks_of(problem), dy_bcd.data<T>(), v_bcd.data<T>(), coef_bcx.data<T>(), dv_bcd.data<T>(),
                partial.data<Accumulator<T>>(), memory.data(), slices, (strips + slices - 1) / slices},
            begin, end);
      });
    });
  });
}

}  // namespace ricci::shift_and_sum_kernels
