// The concept of a mixer: the part of a block that exchanges information between positions. The rest of a block processes each position
// separately, so only mixers handle causality, padding and the decoding cache.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <utility>

#include "autograd/arg.h"
#include "core/error.h"
#include "core/fields.h"
#include "models/layers/init.h"
#include "models/layers/rope.h"

namespace ricci {

inline constexpr int64_t kMaxLayers = 100'000;  // limits how much memory a typing error can allocate

inline void check_heads(int64_t heads, int64_t d) {
  if (d % heads != 0) fail("model.heads: {} does not divide d = {}", {heads, d});
}

// The properties of a block that its mixer needs.
struct MixerShape {
  int64_t d = 0;       // width of its input and output
  int64_t ctx = 0;     // largest number of positions
  bool causal = true;  // a position does not depend on later ones
  bool bias = true;    // its linear maps have biases
  double dropout = 0;
  double norm_eps = 1e-5;  // for its norms
  Rope rope{};             // the rotation of queries and keys by their position
  InitialWeights init{};
  int64_t layer = 0;  // index of the block in its stack
};

// The config of a mixer or a family without keys.
struct NoKeys {};
inline void visit_fields(NoKeys&, const Fields&) {}

// A mixer is a struct with
//   m(x_bcd, lengths_b) full sequences -> y_bcd. The positions from lengths_b[b] on are padding and must not be used. Empty lengths: no
//                       padding
//   m(x_bcd, cache)     the next positions -> y_bcd, equal to the rows of m of the full sequence; without gradient
//   Cache               its memory of earlier positions; make_cache(batch, dtype, device) makes an empty one
//   positions_at_once() the largest number of positions in one such call
//   kName               its name in run files: `mixer: sdp`
//   Config              its keys in run files, listed by visit_fields; NoKeys if it has none
//   M(shape, config)    its parameters without values, with their roles and distributions; visit() names them
// and, optionally,
//   kTurns              true: it rotates queries and keys by MixerShape::rope
//   kOnlyCausal         true: it cannot use later positions, so `causal` is true for a classifier as well
//   check(config, shape)     throws if the config is impossible; required if it has keys
//   warning(config, shape)   a line about a config that works but is surprising, or an empty string
//   each_visibility(f)  for attention: calls f(first head, head count, their visible keys) for its heads
//   forms()             the matrices of its scores (models/layers/watch.h)
//   metric_maps(x_bcd)  if its scores come from a metric: {q, p}, the maps of x that are multiplied to give the scores
template <class M>
concept Mixer = requires(const M m, M changed, const Arg& x_bcd, const Tensor& lengths_b, typename M::Cache& cache,
    const typename M::Config& config, const MixerShape& shape, Dtype dtype, Device device) {
  { m(x_bcd, lengths_b) } -> std::same_as<Tensor>;
  { m(x_bcd, cache) } -> std::same_as<Tensor>;
  { m.make_cache(int64_t{}, dtype, device) } -> std::same_as<typename M::Cache>;
  { m.positions_at_once() } -> std::same_as<int64_t>;
  { M::kName } -> std::convertible_to<const char*>;
  {M(shape, config)};
};

}  // namespace ricci
