#include "models/inspection/token_distances.h"

#include <algorithm>
#include <array>

#include "core/cpu/parallel.h"
#include "models/layers/watch.h"

namespace ricci {
namespace {

constexpr int64_t kTokensAtOnce = 4096;

Tensor ids_from(int64_t first, int64_t count, Device device) {
  const Tensor ids_bc({1, count}, Dtype::i64);
  for (int64_t i = 0; i < count; ++i) ids_bc.data<int64_t>()[i] = first + i;
  return to(ids_bc, device);
}

// Writes (q_i - q_j) . (p_i - p_j) for the tokens i of `maps` and j of `others`, the part of the vocabulary that starts at `first`.
void write_distances(
    const std::array<Tensor, 2>& maps, const std::array<Tensor, 2>& others, int64_t heads, int64_t first, const Tensor& distances_ntv) {
  const Tensor &q = maps[0], &p = maps[1];
  const int64_t tokens = q.shape()[1], count = others[0].shape()[1], d = q.shape()[2], k = d / heads, vocab = distances_ntv.shape()[2];
  parallel_for(heads * tokens, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t begin_i = row % tokens * d + row / tokens * k;
      for (int64_t j = 0; j < count; ++j) {
        double sum = 0;
        for (int64_t x = 0; x < k; ++x) {
          const int64_t other = j * d + row / tokens * k + x;
          sum += (q.data<double>()[begin_i + x] - others[0].data<double>()[other]) *
                 (p.data<double>()[begin_i + x] - others[1].data<double>()[other]);
        }
        distances_ntv.data<double>()[row * vocab + first + j] = sum;
      }
    }
  });
}

}  // namespace

Tensor token_distances(const Model& model, const MixingLayer& layer, const Tensor& ids_t) {
  if (!layer.metric_maps) return {};
  const auto projected = [&](const Tensor& ids_bc) {
    const auto [q_bcd, p_bcd] = layer.metric_maps(model.token_embeddings(ids_bc));
    return std::array{on_host(q_bcd), on_host(p_bcd)};
  };
  const int64_t vocab = model.config().vocab, heads = layer.heads[0].count;
  const std::array<Tensor, 2> maps = projected(reshape(ids_t, {1, ids_t.size()}));
  const Tensor distances_ntv({heads, ids_t.size(), vocab}, Dtype::f64);
  for (int64_t first = 0; first < vocab; first += kTokensAtOnce)
    write_distances(maps, projected(ids_from(first, std::min(kTokensAtOnce, vocab - first), ids_t.device())), heads, first, distances_ntv);
  return distances_ntv;
}

}  // namespace ricci
