#include "models/inspection/observation.h"

#include <algorithm>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci::inspection {
namespace {

constexpr int64_t kTokensAtOnce = 4096;

Tensor ids_from(int64_t first, int64_t count, Device device) {
  const Tensor ids_bc({1, count}, Dtype::i64);
  for (int64_t i = 0; i < count; ++i) ids_bc.data<int64_t>()[i] = first + i;
  return to(ids_bc, device);
}

// Distances of the tokens in q and p to those in other_q and other_p, to the places first .. of the vocabulary in `to`.
void write_distances(const std::array<Tensor, 2>& of, const std::array<Tensor, 2>& others, int64_t heads, int64_t first, const Tensor& to) {
  const int64_t tokens = of[0].shape()[1], count = others[0].shape()[1], d = of[0].shape()[2], k = d / heads, vocab = to.shape()[2];
  parallel_for(heads * tokens, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row % tokens * d + row / tokens * k;
      for (int64_t j = 0; j < count; ++j) {
        double sum = 0;
        for (int64_t x = 0; x < k; ++x) {
          const int64_t other = j * d + row / tokens * k + x;
          sum += (of[0].data<double>()[at + x] - others[0].data<double>()[other]) *
                 (of[1].data<double>()[at + x] - others[1].data<double>()[other]);
        }
        to.data<double>()[row * vocab + first + j] = sum;
      }
    }
  });
}

}  // namespace

Tensor on_host(const Tensor& t) { return convert(to(t, Device::cpu), Dtype::f64); }

Tensor columns_of(const Rows& rows) {
  const int64_t width = rows.width ? rows.width : rows.of.shape()[2] - rows.offset;
  return slice(rows.of, 2, rows.offset, width);
}

Tensor times_values(const Tensor& table_bncC, const Tensor& v_bcd) {
  const int64_t heads = table_bncC.shape()[1], d = v_bcd.shape()[2];
  const Tensor v_bcnk = reshape(v_bcd, {v_bcd.shape()[0], v_bcd.shape()[1], heads, d / heads});
  const Tensor table = to(convert(table_bncC, v_bcd.dtype()), v_bcd.device());
  return reshape(contract("bncC,bCnk->bcnk", table, v_bcnk), v_bcd.shape());
}

Tensor dispatching_table(const Tensor& coef_bcx, int64_t heads) {
  const int64_t b = coef_bcx.shape()[0], c = coef_bcx.shape()[1];
  const Tensor units_bcnC = zeros({b, c, heads, c}, Dtype::f64, Device::cpu);
  for (int64_t i = 0; i < b * c * heads; ++i) units_bcnC.data<double>()[i * c + i / heads % c] = 1;
  const Tensor table_bcx = shift_and_sum(reshape(units_bcnC, {b, c, heads * c}), on_host(coef_bcx), {.heads = heads});
  return permute(reshape(table_bcx, {b, c, heads, c}), {0, 2, 1, 3});
}

Tensor query_key_forms(const Tensor& qkv_weight, int64_t heads) {
  const int64_t d = qkv_weight.shape()[1];
  const Tensor weight = on_host(qkv_weight);
  const auto of_heads = [&](int64_t third) { return reshape(slice(weight, 0, third * d, d), {heads, d / heads, d}); };
  return contract("nkd,nkD->ndD", of_heads(0), of_heads(1));
}

Tensor squared_distances(const Tensor& ids_t, int64_t vocab, int64_t heads, const Project& project) {
  const auto projected = [&](const Tensor& ids_bc) {
    const auto [q_bcd, p_bcd] = project(ids_bc);
    return std::array{on_host(q_bcd), on_host(p_bcd)};
  };
  const std::array<Tensor, 2> of = projected(reshape(ids_t, {1, ids_t.size()}));
  const Tensor distances_ntv({heads, ids_t.size(), vocab}, Dtype::f64);
  for (int64_t first = 0; first < vocab; first += kTokensAtOnce)
    write_distances(of, projected(ids_from(first, std::min(kTokensAtOnce, vocab - first), ids_t.device())), heads, first, distances_ntv);
  return distances_ntv;
}

}  // namespace ricci::inspection
