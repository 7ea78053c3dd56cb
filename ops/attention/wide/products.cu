// One head at a time, for the sequences whose scores fit into memory together. With z the scale of the scores and m_tj the factor of
// dropout:
//   s = q k^T,  p_tj = exp(z s_tj - lse_t),  y = (m p) v
//   backward: s and p again, e = dy v^T,  delta_t = sum_j m_tj p_tj e_tj,  ds_tj = z p_tj (m_tj e_tj - delta_t)
//             dv = (m p)^T dy,  dk = ds^T q,  dq = ds k
// Keys after the end of a sequence are copied as zeros: products read them. With b sequences, n heads of width k, c queries and c keys, P
// = b n c c pairs:
//   bytes   forward 20 P: s written and read three times, m p written and read; backward 34 P: s and e written and read twice, m p and ds
//           written, read once and twice; beside them 8 b n c k and 16 b n c k
//   FLOPs   4 P k forward, 10 P k backward, whatever the mask hides
//   floor   b n = 64, c = 1024, k = 512 on an H200: 1.3 GB at 4.8 TB/s 0.28 ms and 137 GFLOP at 989 TFLOP/s 0.14 ms;
//           backward 2.3 GB 0.48 ms and 344 GFLOP 0.35 ms
#include <algorithm>

#include "cuda/gemm/gemm.h"
#include "cuda/math.h"
#include "cuda/trace.h"
#include "cuda/verbs/rows.h"
#include "ops/attention/kernels.h"

namespace ricci {
namespace attention_kernels {
namespace wide {

// Some sequences, and the head of each of them that is worked on.
struct Group {
  int64_t first, count, head;
};

// A row of scores: query r % c of sequence r / c of the group.
struct ScoreRow {
  int64_t head, t, first_key, end_key;
  __device__ ScoreRow(const Problem& problem, const Group& group, int64_t r)
      : head((group.first + r / problem.queries) * problem.heads + group.head),
        t(r % problem.queries),
        first_key(problem.sees.first_key(t)),
        end_key(problem.sees.end_key(t, problem.keys_of(head))) {}
  __device__ bool sees(int64_t j) const { return j >= first_key && j < end_key; }
};

struct Weights {
  Problem problem;
  Group group;
  const float* s;
  bf16* p;
  float* lse;
  template <class Row> __device__ void operator()(int64_t r, Row row) const {
    const ScoreRow score_row(problem, group, r);
    const float* const s_j = s + r * row.n;
    const float z = static_cast<float>(problem.scale);
    const float most = row.max([&](int64_t j) { return score_row.sees(j) ? s_j[j] * z : lowest<float>(); });
    const float sum = row.sum([&](int64_t j) { return score_row.sees(j) ? math::exp(s_j[j] * z - most) : 0.0f; });
    const float scale = sum > 0 ? 1 / sum : sum;  // 0 where no key is seen; a NaN stays
    const auto weight = [&](float score, int64_t j) {
      if (!score_row.sees(j)) return 0.0f;
      const float p_j = math::exp(score * z - most) * scale;
      return problem.dropout.active() ? p_j * problem.dropout.template factor<float>(problem.weight(score_row.head, score_row.t) + j) : p_j;
    };
    row.each_piece([&](auto piece) { piece.store(p + r * row.n, map(weight, piece.load(s_j), piece.index())); }, s_j, p);
    row.once([&] { lse[score_row.head * problem.queries + score_row.t] = sum == 0 ? -lowest<float>() : most + math::log(sum); });
  }
};

struct Gradients {
  Problem problem;
  Group group;
  const float *s, *e, *lse;
  bf16 *p, *ds;  // p is m p
  template <class Row> __device__ void operator()(int64_t r, Row row) const {
    const ScoreRow score_row(problem, group, r);
    const float *const s_j = s + r * row.n, *const e_j = e + r * row.n;
    const float z = static_cast<float>(problem.scale), lse_t = lse[score_row.head * problem.queries + score_row.t];
    const auto weight = [&](float score, int64_t j) { return score_row.sees(j) ? math::exp(score * z - lse_t) : 0.0f; };
    const auto kept = [&](int64_t j) {
      return problem.dropout.active() ? problem.dropout.template factor<float>(problem.weight(score_row.head, score_row.t) + j) : 1.0f;
    };
    const float delta = row.sum([&](int64_t j) { return score_row.sees(j) ? weight(s_j[j], j) * kept(j) * e_j[j] : 0.0f; });
    row.each_piece(
        [&](auto piece) {
          const auto score = piece.load(s_j), e = piece.load(e_j);
          const auto j = piece.index();
          piece.store(p + r * row.n, map([&](float score_j, int64_t at_j) { return weight(score_j, at_j) * kept(at_j); }, score, j));
          piece.store(ds + r * row.n,
              map([&](float score_j, float e_at,
                      int64_t at_j) { return score_row.sees(at_j) ? z * weight(score_j, at_j) * (kept(at_j) * e_at - delta) : 0.0f; },
                  score, e, j));
        },
        s_j, e_j, p, ds);
  }
};

// The rows of keys or values of a sequence, zeros after its end.
struct Existing {
  Problem problem;
  const bf16* from;
  int64_t from_row;
  bf16* target;
  template <class Row> __device__ void operator()(int64_t r, Row row) const {
    const bool exists = r % problem.keys < problem.keys_of(r / problem.keys * problem.heads);
    const bf16* const x = from + r * from_row;
    bf16* const y = target + r * row.n;
    row.each_piece([&](auto piece) { piece.store(y, exists ? piece.load(x) : piece.all(0.0f)); }, x, y);
  }
};

// Keys or values as products may read them.
HOST Rows existing(const Problem& problem, const Rows& view) {
  if (!problem.lengths) return view;
  const Tensor& tensor = view.tensor;
  const int64_t columns = problem.of_key_heads().d();
  const Tensor copy = like(tensor, Shape{problem.batches, problem.keys, columns});
  for_rows("attention: keys", tensor.device(), problem.batches * problem.keys, columns,
      Existing{problem, tensor.data<bf16>() + view.offset, tensor.shape()[2], copy.data<bf16>()});
  return {copy, 0, 0, view.group};
}

// A matrix of each sequence of a group: rows of a view, or of the scores.
struct Matrices {
  const void* data;
  MatrixAt strides;
  Matrices transposed() const { return {data, {strides.column_stride, strides.row_stride, strides.batch_stride}}; }
};
template <class T> Matrices matrices(const Problem& problem, const Group& group, const HeadRows<T>& rows) {
  return {rows.of_head(problem, group.first * problem.heads + group.head), {rows.row, 1, rows.sequence}};
}
HOST Matrices scores(const Problem& problem, const Tensor& t) { return {t.raw(), {problem.keys, 1, problem.queries * problem.keys}}; }

struct Extents {
  int64_t m, n, k;
};
HOST void multiply(const Tensor& like, const Group& group, const Extents& extents, const Matrices& a, const Matrices& b, const Matrices& c,
    bool add, bool c_f32 = false) {
  gemm({.device = like.device(),
      .dtype = Dtype::bf16,
      .batch = group.count,
      .m = extents.m,
      .n = extents.n,
      .k = extents.k,
      .a = a.data,
      .b = b.data,
      .a_at = a.strides,
      .b_at = b.strides,
      .c = const_cast<void*>(c.data),
      .c_at = c.strides,
      .accumulate = add,
      .c_f32 = c_f32});
  trace::flops(
      -2.0 * static_cast<double>(group.count * extents.m * extents.n) * static_cast<double>(extents.k));  // attention counts its own
}

// Sequences whose matrices fit into 1 GiB, on the emulator into 128 KiB, so that small problems make several groups there.
HOST int64_t sequences_at_once(const Problem& problem, Device device, int64_t bytes_of_pair) {
  const int64_t held = device == Device::cuda ? int64_t{1} << 30 : int64_t{1} << 17;
  return between<int64_t>(1, held / (bytes_of_pair * problem.queries * problem.keys), problem.batches);
}
template <class F> void each_group(const Problem& problem, int64_t sequences, F f) {
  for (int64_t head = 0; head < problem.heads; ++head)
    for (int64_t first = 0; first < problem.batches; first += sequences)
      f(Group{first, std::min(sequences, problem.batches - first), head});
}

}  // namespace wide

using namespace wide;

// Returns false if the scores of one sequence alone would take gigabytes.
HOST bool products_fit(const Problem& problem) { return problem.queries * problem.keys <= int64_t{1} << 28; }

HOST void products_forward(const Problem& problem, const Views& inputs, const Outputs& out) {
  const Tensor& y = out.y_bcd;
  const Rows k_rows = existing(problem, inputs.k), v_rows = existing(problem, inputs.v);
  const auto q = head_rows<const bf16>(inputs.q), k = head_rows<const bf16>(k_rows), v = head_rows<const bf16>(v_rows);
  const auto y_rows = head_rows<bf16>({y});
  const int64_t c = problem.queries, keys = problem.keys, width = problem.width, sequences = sequences_at_once(problem, y.device(), 6);
  const Tensor s = like(y, Shape{sequences, c, keys}, Dtype::f32), p = like(y, s.shape());
  each_group(problem, sequences, [&](const Group& group) {
    multiply(
        y, group, {c, keys, width}, matrices(problem, group, q), matrices(problem, group, k).transposed(), scores(problem, s), false, true);
    for_rows("attention: weights", y.device(), group.count * c, keys,
        Weights{problem, group, s.data<float>(), p.data<bf16>(), out.lse_bnc.data<float>()});
    multiply(y, group, {c, width, keys}, scores(problem, p), matrices(problem, group, v), matrices(problem, group, y_rows), false);
  });
}

HOST void products_backward(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients) {
  const Rows k_rows = existing(problem, inputs.k), v_rows = existing(problem, inputs.v);
  const auto q = head_rows<const bf16>(inputs.q), k = head_rows<const bf16>(k_rows), v = head_rows<const bf16>(v_rows),
             dy_rows = head_rows<const bf16>({dy});
  const auto dq = head_rows<bf16>(gradients.q), dk = head_rows<bf16>(gradients.k), dv = head_rows<bf16>(gradients.v);
  const int64_t c = problem.queries, keys = problem.keys, width = problem.width, sequences = sequences_at_once(problem, dy.device(), 12);
  const Tensor s = like(dy, Shape{sequences, c, keys}, Dtype::f32), e = like(s), p = like(dy, s.shape()), ds = like(p);
  each_group(problem, sequences, [&](const Group& group) {
    const auto matrices_of = [&](const auto& rows) { return matrices(problem, group, rows); };
    multiply(dy, group, {c, keys, width}, matrices_of(q), matrices_of(k).transposed(), scores(problem, s), false, true);
    multiply(dy, group, {c, keys, width}, matrices_of(dy_rows), matrices_of(v).transposed(), scores(problem, e), false, true);
    for_rows("attention': weights", dy.device(), group.count * c, keys,
        Gradients{problem, group, s.data<float>(), e.data<float>(), out.lse_bnc.data<float>(), p.data<bf16>(), ds.data<bf16>()});
    // Views that are the same columns have one gradient, to which each of them adds; so have the heads that share keys.
    const bool shared = group.head % problem.group > 0;
    multiply(dy, group, {keys, width, c}, scores(problem, p).transposed(), matrices_of(dy_rows), matrices_of(dv), shared);
    multiply(dy, group, {keys, width, c}, scores(problem, ds).transposed(), matrices_of(q), matrices_of(dk), shared || dk.data == dv.data);
    multiply(dy, group, {c, width, keys}, scores(problem, ds), matrices_of(k), matrices_of(dq), dq.data == dk.data || dq.data == dv.data);
  });
}

}  // namespace attention_kernels

using namespace attention_kernels::wide;

CUDA_KERNEL(RowKernel<Weights>);
CUDA_KERNEL(RowKernel<Gradients>);
CUDA_KERNEL(RowKernel<Existing>);

}  // namespace ricci
