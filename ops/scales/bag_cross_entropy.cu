// The loss of a cell for the bag of tokens in the next cell. Keeps the largest logit of a row and the sum of exp(l - largest): with these,
// the softmax needs one pass.
//   nll_bj = log sum_v exp(l_bjv) - 1/s sum_w l_bj[id_w],   w: the s tokens of cell j + 1;    loss = sum_bj nll_bj / counted
//   dl_bjv = (exp(l_bjv) / sum_v exp(l_bjv) - 1/s #{w: id_w = v}) dloss / counted;    0 for cells that are not scored
//   bytes   4 N for N logits in f32, 8 N backward, half in bf16
#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/math.h"
#include "cuda/verbs/rows.h"
#include "ops/pooling/lengths.h"
#include "ops/scales/cells.h"

namespace ricci {
namespace bag_cross_entropy_kernels {

struct Bags {
  const int64_t* ids_bc;
  int64_t cells, size;
  Lengths lengths;
  HD bool counts(int64_t r) const { return (r % cells + 2) * size <= lengths.length_of(r / cells); }
  HD const int64_t* next_cell(int64_t r) const { return ids_bc + r / cells * lengths.context + (r % cells + 1) * size; }
};

template <class T> struct Forward {
  using A = Accumulator<T>;
  const T* l_rv;
  double *nll_r, *largest_r, *sum_r;
  Bags bags;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    const T* const l = l_rv + r * row.n;
    const A largest = row.max([&](int64_t v) { return A(l[v]); });
    const A sum = row.sum([&](int64_t v) { return math::exp(A(l[v]) - largest); });
    row.once([&] {
      largest_r[r] = double(largest);
      sum_r[r] = double(sum);
      nll_r[r] = bags.counts(r) ? double(math::log(sum)) + mean_below(double(largest), l, bags.next_cell(r), row.n) : 0;
    });
  }
  // Returns the mean of largest - l over the bag.
  HD double mean_below(double largest, const T* l, const int64_t* ids, int64_t vocabulary) const {
    double sum = 0;
    for (int64_t w = 0; w < bags.size; ++w) sum += ids[w] >= 0 && ids[w] < vocabulary ? largest - double(A(l[ids[w]])) : __builtin_nan("");
    return sum / double(bags.size);
  }
};

struct Mean {
  const double* nll_r;
  double *counted, *loss;
  Bags bags;
  template <class Row> HD void operator()(int64_t, Row row) const {
    const double n = row.sum([&](int64_t r) { return bags.counts(r) ? 1.0 : 0.0; });
    const double sum = row.sum([&](int64_t r) { return nll_r[r]; });
    row.once([&] {
      *counted = n > 0 ? n : 1;
      *loss = sum / *counted;
    });
  }
};

template <class T> struct Backward {
  using A = Accumulator<T>;
  const T* l_rv;
  const double *largest_r, *sum_r, *counted, *dloss;
  T* dl_rv;
  Bags bags;
  template <class Row> HD void operator()(int64_t r, Row row) const {
    T* const dl = dl_rv + r * row.n;
    if (!bags.counts(r)) return row.each([&](int64_t v) { dl[v] = T(A(0)); });  // for all threads of the row
    const A share = A(*dloss / *counted), largest = A(largest_r[r]), factor = share / A(sum_r[r]), each = share / A(bags.size);
    const T* const l = l_rv + r * row.n;
    row.each([&](int64_t v) { dl[v] = T(math::exp(A(l[v]) - largest) * factor); });
    row.once([&] {
      for (int64_t w = 0; w < bags.size; ++w)
        if (const int64_t id = bags.next_cell(r)[w]; id >= 0 && id < row.n) dl[id] = T(A(dl[id]) - each);
    });
  }
};

HOST void check_ids(const Tensor& ids_bc, int64_t vocabulary) {
  if (ids_bc.device() != Device::cpu) return;
  const int64_t context = ids_bc.shape()[1];
  for (int64_t i = 0; i < ids_bc.size(); ++i)
    if (const int64_t id = ids_bc.data<int64_t>()[i]; id < 0 || id >= vocabulary)
      fail("bag_cross_entropy: id {} at [{} {}] is outside the vocabulary of {}", {id, i / context, i % context, vocabulary});
}

HOST Bags make_bags(const Tensor& ids_bc, int64_t size, const Tensor& lengths_b) {
  return {ids_bc.data<int64_t>(), ids_bc.shape()[1] / size, size, lengths_of(lengths_b, ids_bc.shape()[1])};
}

HOST Tensor backward(
    const Tensor& dloss, const Tensor& logits_bmv, const Tensor& largest_r, const Tensor& sum_r, const Tensor& counted, const Bags& bags) {
  const Tensor dlogits_bmv = like(logits_bmv);
  const int64_t rows = logits_bmv.shape()[0] * logits_bmv.shape()[1];
  for_rows_of<Backward>("bag_cross_entropy'", rows, logits_bmv.shape()[2], logits_bmv, largest_r.data<double>(), sum_r.data<double>(),
      counted.data<double>(), dloss.data<double>(), dlogits_bmv, bags);
  return dlogits_bmv;
}

}  // namespace bag_cross_entropy_kernels

using namespace bag_cross_entropy_kernels;

HOST Tensor bag_cross_entropy(const Arg& logits_bmv, const Arg& ids_bc, int64_t size, const Arg& lengths_b) {
  const Dims n = DIMS(logits_bmv, i64(ids_bc), optional(i64(lengths_b)));
  if (size < 1) fail("bag_cross_entropy: the cell size is {}, expected 1 or more", {size});
  if (n['m'] != n['c'] / size)
    fail("bag_cross_entropy: logits_bmv{} has {} cells, expected the same number as ids_bc{} ({} cells of {} tokens)",
        {show(logits_bmv.shape()), n['m'], show(ids_bc.shape()), n['c'] / size, size});
  check_ids(ids_bc, n['v']);
  check_lengths("bag_cross_entropy", lengths_b, n['c']);
  const Device device = logits_bmv.device();
  const int64_t rows = n['b'] * n['m'];
  const Tensor nll_r({rows}, Dtype::f64, device), largest_r = like(nll_r), sum_r = like(nll_r);
  const Tensor counted({}, Dtype::f64, device), loss = like(counted);
  const Bags bags = make_bags(ids_bc, size, lengths_b);
  for_rows_of<Forward>(
      "bag_cross_entropy", rows, n['v'], logits_bmv, nll_r.data<double>(), largest_r.data<double>(), sum_r.data<double>(), bags);
  for_rows("bag_cross_entropy: mean", device, 1, rows, Mean{nll_r.data<double>(), counted.data<double>(), loss.data<double>(), bags});
  return record("bag_cross_entropy", {logits_bmv}, loss,
      keep(logits_bmv, Tensor(ids_bc), Tensor(lengths_b), size, largest_r, sum_r, counted),
      [](const Tensor& dloss, const Tensor& logits_bmv, const Tensor& ids_bc, const Tensor& lengths_b, int64_t size,
          const Tensor& largest_r, const Tensor& sum_r, const Tensor& counted) -> Grads {
        return {backward(dloss, logits_bmv, largest_r, sum_r, counted, make_bags(ids_bc, size, lengths_b))};
      });
}

CUDA_ROWS(Forward);
CUDA_KERNEL(RowKernel<Mean>);
CUDA_ROWS(Backward);

}  // namespace ricci
