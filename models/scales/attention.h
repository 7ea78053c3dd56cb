// Attention from tokens to cells, with the heads divided among the scales, from near and detailed to far and coarse. The keys of a head
// of scale s are the cells of that scale:
//   q = Wq x,   k = Wk cells_s,   v = Wv cells_s   (the head's rows of the matrices),   y = merge(p v) W_proj^T
// A head outputs zeros while its scale has no complete cell.
#pragma once
#include <algorithm>

#include "cuda/device/device.h"
#include "models/layers/layers.h"
#include "models/layers/mixer.h"
#include "models/layers/watch.h"
#include "models/scales/scale_list.h"
#include "ops/scales/cells.h"

namespace ricci {

// A run of adjacent heads that attend to one scale.
struct HeadRun {
  size_t scale;  // index among the scales
  int64_t first, count;
};

// The scale index of each head. The heads of a scale are adjacent, in the order of the scales. Heads are divided evenly; any remaining
// heads go to the finer scales.
inline std::vector<int64_t> divided_heads(int64_t heads, int64_t scales) {
  std::vector<int64_t> scale_of_head;
  for (int64_t s = 0; s < scales; ++s)
    scale_of_head.insert(scale_of_head.end(), static_cast<size_t>(heads / scales + (s < heads % scales)), s);
  return scale_of_head;
}

inline std::vector<HeadRun> head_runs(const std::vector<int64_t>& scale_of_head) {
  std::vector<HeadRun> runs;
  for (size_t head = 0; head < scale_of_head.size(); ++head) {
    const auto scale = static_cast<size_t>(scale_of_head[head]);
    if (runs.empty() || runs.back().scale != scale) runs.push_back({scale, static_cast<int64_t>(head), 0});
    ++runs.back().count;
  }
  return runs;
}

struct ScaleAttention {
  // Processes full sequences: the tokens x_bcd and the cells [b m d] of each scale, empty for a scale without a complete cell.
  Tensor operator()(const Arg& x_bcd, const std::vector<Tensor>& cells_s, const Tensor& lengths_b) const {
    std::vector<Arg> y;
    for (const HeadRun& run : runs) {
      const Tensor& cells_bmd = cells_s[run.scale];
      if (!cells_bmd) {
        if (Watch* const watch = Watch::active()) watch->skip_heads(this, run.count);
        y.push_back(zero_output(x_bcd, run));
        continue;
      }
      const Visibility& sees = sees_s[run.scale];
      AttentionOptions options{.heads = run.count, .dropout = Training::active() ? dropout : 0};
      if (lengths_b) options.lengths_b = sees.cell > 1 ? whole_cells(lengths_b, sees.cell) : lengths_b;
      y.push_back(watched_attention(
          this, {map_heads(q, run, x_bcd)}, {map_heads(k, run, cells_bmd)}, {map_heads(v, run, cells_bmd)}, sees, options));
    }
    return proj(joined(y));
  }

  Linear q, k, v, proj;
  std::vector<HeadRun> runs;
  std::vector<Visibility> sees_s;  // for each scale, the cells visible to a token
  int64_t head_width, ctx;
  double dropout;

  ScaleAttention(const MixerShape& shape, const std::vector<int64_t>& scale_of_head, std::vector<Visibility> sees)
      : q(projection(shape)),
        k(projection(shape)),
        v(projection(shape)),
        proj(shape.d, shape.d, shape.bias, shape.init.attention_output(shape.d)),
        runs(head_runs(scale_of_head)),
        sees_s(std::move(sees)),
        head_width(shape.d / static_cast<int64_t>(scale_of_head.size())),
        ctx(shape.ctx),
        dropout(shape.dropout) {}

  bool reads(size_t scale) const {
    return std::any_of(runs.begin(), runs.end(), [&](const HeadRun& run) { return run.scale == scale; });
  }

  // Decoding: the keys and values of a run of heads. For tokens, they are stored as in attention_cached.
  struct Keys {
    CellMemory k, v;
  };
  struct Cache {
    std::vector<Keys> keys;  // one per run of heads
    int64_t position = 0;
  };
  Cache make_cache(int64_t batch, Dtype dtype, Device device) const {
    Cache cache;
    for (const HeadRun& run : runs) {
      const Visibility& sees = sees_s[run.scale];
      const Shape shape{batch, run.count, slots(sees), head_width};
      cache.keys.push_back(sees.cell == 1 ? Keys{{zeros(shape, dtype, device)}, {zeros(shape, dtype, device)}} : Keys{});
    }
    return cache;
  }
  // Processes the next tokens x_bcd and the cells that they complete.
  Tensor advance(const Tensor& x_bcd, const std::vector<Tensor>& new_cells_s, Cache& cache) const {
    std::vector<Arg> y;
    for (size_t i = 0; i < runs.size(); ++i) {
      const HeadRun& run = runs[i];
      y.push_back(sees_s[run.scale].cell == 1 ? to_tokens(x_bcd, new_cells_s[run.scale], run, cache.keys[i], cache.position)
                                              : to_cells(x_bcd, new_cells_s[run.scale], run, cache.keys[i], cache.position));
    }
    cache.position += x_bcd.shape()[1];
    return proj(joined(y));
  }
  // The token cache is a ring: a new token overwrites the oldest. The tokens of one call must leave the window of the first one complete.
  int64_t positions_at_once() const {
    int64_t smallest = ctx;
    for (const HeadRun& run : runs)
      if (const Visibility& sees = sees_s[run.scale]; sees.cell == 1 && slots(sees) < ctx)
        smallest = std::min(smallest, slots(sees) - sees.most + 1);
    return smallest;
  }

  template <class F> void each_visibility(const F& f) const {
    for (const HeadRun& run : runs) f(run.first, run.count, sees_s[run.scale]);
  }
  Forms forms() const { return query_key_forms(q.weight.value, k.weight.value, proj.weight.value.shape()[0] / head_width); }
  template <class V> void visit(V&& f) { f("q", q, "k", k, "v", v, "proj", proj); }

 private:
  static Linear projection(const MixerShape& shape) { return Linear(shape.d, shape.d, shape.bias, shape.init.packed_projection(shape.d)); }
  int64_t slots(const Visibility& sees) const { return std::min(ctx, 2 * sees.most); }
  // The output of a map for the heads of a run.
  Tensor map_heads(const Linear& map, const HeadRun& run, const Arg& x) const {
    if (runs.size() == 1) return map(x);
    const int64_t first = run.first * head_width, count = run.count * head_width;
    return linear(x, slice(map.weight, 0, first, count), map.bias.value ? slice(map.bias, 0, first, count) : Tensor());
  }
  Tensor zero_output(const Tensor& x_bcd, const HeadRun& run) const {
    return zeros({x_bcd.shape()[0], x_bcd.shape()[1], run.count * head_width}, x_bcd.dtype(), x_bcd.device());
  }
  static Tensor joined(const std::vector<Arg>& y) { return y.size() == 1 ? Tensor(y[0]) : concatenate(y, 2); }

  Tensor to_tokens(const Tensor& x_bcd, const Tensor& keys_bcd, const HeadRun& run, Keys& keys, int64_t position) const {
    return attention_cached({map_heads(q, run, x_bcd)}, {map_heads(k, run, keys_bcd)}, {map_heads(v, run, keys_bcd)}, keys.k.rows_bmx,
        keys.v.rows_bmx, position, sees_s[run.scale], {.heads = run.count});
  }
  Tensor to_cells(const Tensor& x_bcd, const Tensor& new_cells_bmd, const HeadRun& run, Keys& keys, int64_t position) const {
    const Visibility& sees = sees_s[run.scale];
    if (new_cells_bmd) {
      keys.k.append(map_heads(k, run, new_cells_bmd));
      keys.v.append(map_heads(v, run, new_cells_bmd));
    }
    if (!keys.k.rows_bmx) return zero_output(x_bcd, run);
    const Tensor y_bcx = attention({map_heads(q, run, x_bcd)}, {keys.k.rows_bmx}, {keys.v.rows_bmx},
        sees.from(position - sees.cell * keys.k.first), {.heads = run.count});
    for (CellMemory* const memory : {&keys.k, &keys.v}) memory->drop_before(sees.first_key(position + x_bcd.shape()[1]));
    return y_bcx;
  }
};

}  // namespace ricci
