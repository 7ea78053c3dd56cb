// y_bcd = scale table_vd[ids_bc] + positions_Cd[first + c]
// dtable_vd = scale sum over (b, c) with ids_bc = v of dy_bcd,   dpositions_Cd[first + c] = sum_b dy_bcd
// Many rows of dy can have the same id. The rows are first sorted by id, so each row of dtable is one sum in a fixed order. With atomic
// additions, the results would depend on the order of the additions.
//   bytes   forward 4 N d for N rows of d in bf16 (8 in f32), positions come from the cache; backward 2 N d and the rows of
//           dtable that occur, written once (all twice in f32)
//   floor   N = 65,536, d = 768 in bf16 on an H200: 0.20 GB at 4.8 TB/s 0.04 ms forward, half of it backward
#include "ops/embedding/embedding.h"

#include <cmath>

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/memory/dry_run.h"
#include "cuda/device/device.h"
#include "cuda/device/graph.h"
#include "cuda/verbs/arithmetic.h"
#include "cuda/verbs/pieces.h"
#include "cuda/verbs/rows.h"
#include "ops/embedding/row_buckets.h"
#include "ops/rows/sum_rows.h"

namespace ricci {
namespace embedding_kernels {

template <class T> struct Forward {
  using A = Accumulator<T>;
  static constexpr int kNeighbours = elements_of_piece<T>();
  const int64_t* ids_r;
  const T *table_vd, *positions_cd;  // positions_cd is null without positions
  T* y_rd;
  int64_t vocabulary, context;
  A scale;
  unsigned long long* bad;  // see bad_id_of; null on the CPU, where check_on_cpu runs first

  template <class Row> __device__ void operator()(int64_t r, Row row) const {
    const int64_t id = ids_r[r];
    const bool known = id >= 0 && id < vocabulary;
    if (!known) row.once([&] { report(r, id); });
    const T* from = table_vd + (known ? id : 0) * row.n;
    const A factor = known ? scale : A(__builtin_nan(""));
    T* y_d = y_rd + r * row.n;
    if (positions_cd) {
      const T* position_d = positions_cd + r % context * row.n;
      row.each_piece([&](auto piece) { piece.store(y_d, factor * piece.load(from) + piece.load(position_d)); }, from, position_d, y_d);
    } else {
      row.each_piece([&](auto piece) { piece.store(y_d, factor * piece.load(from)); }, from, y_d);
    }
  }
  __device__ void report(int64_t r, int64_t id) const {
    const auto place = static_cast<unsigned long long>(r) + 1;
    if (atomicCAS(bad, 0ull, place) != 0) return;
    bad[1] = static_cast<unsigned long long>(id);
    bad[2] = static_cast<unsigned long long>(context);
    bad[3] = static_cast<unsigned long long>(vocabulary);
  }
};

// The rows that bucket_rows found for each id.
struct Bucket {
  static constexpr int64_t kLongest = 4096;
  const int64_t *start_u, *rows_k;
  HD int64_t count(int64_t v) const { return start_u[v + 1] - start_u[v]; }
  HD int64_t row(int64_t v, int64_t k) const { return rows_k[start_u[v] + k]; }
};
template <class T, class To = T> using SumBucket = SumRows<T, Bucket, To>;
template <class T, class To = T> using SumBatch = SumRows<T, RegularRows, To>;

// The first bad id that a kernel found: its row + 1 (0: no bad id), the id, the context length and the vocabulary size. One tensor per
// device, kept until the program ends.
HOST const Tensor& bad_id_of(Device device) {
  auto make = [](Device on) -> const Tensor& {
    const OutsideDryRun real;
    return *new Tensor(zeros({4}, Dtype::i64, on));
  };
  if (device == Device::cuda) {
    static const Tensor& on_cuda = make(device);
    return on_cuda;
  }
  static const Tensor& emulated = make(Device::cuda_emulated);
  return emulated;
}

HOST [[noreturn]] void fail_bad_id(int64_t place, int64_t id, int64_t context, int64_t vocabulary) {
  fail("embedding: id {} at [{} {}] is outside the vocabulary of {}", {id, place / context, place % context, vocabulary});
}

HOST void check_on_cpu(const Tensor& ids_bc, int64_t vocabulary) {
  const int64_t* id = ids_bc.data<int64_t>();
  for (int64_t r = 0; r < ids_bc.size(); ++r)
    if (id[r] < 0 || id[r] >= vocabulary) fail_bad_id(r, id[r], ids_bc.shape()[1], vocabulary);
}

HOST void check_positions(const Tensor& ids_bc, const Tensor& positions_Cd, int64_t first) {
  if (!positions_Cd) return;
  const int64_t count = ids_bc.shape()[1], has = positions_Cd.shape()[0];
  if (first < 0 || first > has - count)
    fail("embedding: {} positions from {} on do not fit in positions_Cd{} ({} positions)", {count, first, show(positions_Cd.shape()), has});
}

HOST Tensor forward(const Tensor& ids_bc, const Tensor& table_vd, const Tensor& positions_Cd, double scale, int64_t first) {
  const int64_t v = table_vd.shape()[0], d = table_vd.shape()[1], b = ids_bc.shape()[0], c = ids_bc.shape()[1];
  const Device device = ids_bc.device();
  if (device == Device::cpu) check_on_cpu(ids_bc, v);
  Tensor y_bcd = like(table_vd, {b, c, d});
  with_dtype(table_vd, [&]<class T>(T) {
    void* bad = device == Device::cpu ? nullptr : bad_id_of(device).raw();
    for_rows("embedding", device, b * c, d,
        Forward<T>{ids_bc.data<int64_t>(), table_vd.data<T>(), positions_Cd ? positions_Cd.data<T>() + first * d : nullptr, y_bcd.data<T>(),
            v, c, Accumulator<T>(scale), static_cast<unsigned long long*>(bad)});
  });
  if (device == Device::cuda_emulated && !recording_graph()) check_embedding_ids(device);  // the kernel has run already
  return y_bcd;
}

HOST Tensor backward_table(const Tensor& dy_bcd, const Tensor& ids_bc, const Shape& table, double scale) {
  Tensor dtable_vd = take_gradient(1);  // few rows receive a gradient; with a tied head, dtable already exists
  const bool add = static_cast<bool>(dtable_vd);
  if (!add) dtable_vd = zeros(table, gradient_dtype(1), dy_bcd.device());
  const RowBuckets buckets = bucket_rows(ids_bc, table[0]);
  const Bucket rows{buckets.start_u.data<int64_t>(), buckets.rows_k.data<int64_t>()};
  with_dtypes(dy_bcd, dtable_vd, [&]<class T, class To>(T, To) {
    sum_rows("embedding'", dy_bcd.device(), table[0], table[1], 64,
        SumBucket<T, To>{dy_bcd.data<T>(), dtable_vd.data<To>(), Accumulator<T>(scale), rows, add});
  });
  return dtable_vd;
}

HOST Tensor backward_positions(const Tensor& dy_bcd, const Shape& positions, int64_t first) {
  const int64_t b = dy_bcd.shape()[0], c = dy_bcd.shape()[1], d = positions[1];
  Tensor dpositions_Cd = zeros(positions, gradient_dtype(2), dy_bcd.device());
  with_dtypes(dy_bcd, dpositions_Cd, [&]<class T, class To>(T, To) {
    To* target = dpositions_Cd.data<To>() + first * d;
    sum_rows("embedding'", dy_bcd.device(), c, d, 8, SumBatch<T, To>{dy_bcd.data<T>(), target, 1, {b, 1, c}});
  });
  return dpositions_Cd;
}

}  // namespace embedding_kernels

using namespace embedding_kernels;

HOST Tensor embedding(const Arg& ids_bc, const Arg& table_vd, const Arg& positions_Cd, double scale, int64_t first_position) {
  DIMS(i64(ids_bc), table_vd, optional(positions_Cd));
  check_positions(ids_bc, positions_Cd, first_position);
  const Tensor y_bcd = forward(ids_bc, table_vd, positions_Cd, scale, first_position);
  return record("embedding", {ids_bc, table_vd, positions_Cd}, y_bcd,
      keep(ids_bc, table_vd.shape(), positions_Cd.shape(), scale, first_position),
      [](const Tensor& dy_bcd, const Tensor& ids_bc, const Shape& table, const Shape& positions, double scale, int64_t first) -> Grads {
        return {Tensor(), wants_gradient(1) ? backward_table(dy_bcd, ids_bc, table, scale) : Tensor(),
            wants_gradient(2) ? backward_positions(dy_bcd, positions, first) : Tensor()};
      });
}

HOST void check_embedding_ids(Device device) {
  if (device == Device::cpu) return;  // ids are checked there before the rows are read
  const Tensor& flag = bad_id_of(device);
  const Tensor seen = to(flag, Device::cpu);
  const int64_t* bad = seen.data<int64_t>();
  if (bad[0] == 0) return;
  copy(flag, zeros({4}, Dtype::i64, Device::cpu));
  fail_bad_id(bad[0] - 1, bad[1], bad[2], bad[3]);
}

HOST Tensor sinusoidal_positions(int64_t context, int64_t width, Dtype dtype, Device device) {
  const Tensor pe({context, width}, Dtype::f64);
  double* out = pe.data<double>();
  for (int64_t d = 0; d < width; ++d) {
    const double w = std::pow(10000.0, -static_cast<double>(d / 2 * 2) / static_cast<double>(width));
    for (int64_t t = 0; t < context; ++t) {
      const double angle = static_cast<double>(t) * w;
      out[t * width + d] = d % 2 ? std::cos(angle) : std::sin(angle);
    }
  }
  return to(convert(pe, dtype), device);
}

CUDA_ROWS(Forward);
CUDA_ROWS(SumBucket);
CUDA_ROWS(SumBatch);
CUDA_KERNEL(RowKernel<SumBucket<bf16, float>>);
CUDA_KERNEL(RowKernel<SumBatch<bf16, float>>);

}  // namespace ricci
