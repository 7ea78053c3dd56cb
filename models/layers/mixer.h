// The concept of a mixer: the part of a block in which positions exchange information. Everything else in a block treats each
// position by itself.
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

// A bound of numbers in a model's config.
inline constexpr int64_t kMaxLayers = 100'000;  // each is made before the first number is asked for

inline void check_heads(int64_t heads, int64_t d) {
  if (d % heads != 0) fail("model.heads: {} does not divide d = {}", {heads, d});
}

// The block for which a mixer is made.
struct MixerShape {
  int64_t d = 0;       // width of what goes in and comes out
  int64_t ctx = 0;     // largest number of positions
  bool causal = true;  // no position reads a later one
  bool bias = true;    // its linear maps have biases
  double dropout = 0;
  double norm_eps = 1e-5;  // in its norms
  Rope rope{};             // how queries and keys turn with their position
  InitialWeights init{};
};

// The config of a mixer or a family without keys of its own.
struct NoKeys {};
inline void visit_fields(NoKeys&, const Fields&) {}

// A mixer is a struct that has
//   m(x_bcd, lengths_b) whole sequences -> y_bcd. Positions from lengths_b[b] on are padding, which no position reads; empty: there is
//                       no padding
//   m(x_bcd, cache)     the next positions -> y_bcd, the same as if all had been read at once; without gradient
//   Cache               what it remembers of the positions read so far; make_cache(batch, dtype, device) makes an empty one
//   positions_at_once() how many positions one such call takes
//   kName               its name in run files: `mixer: sdp`
//   Config              its keys of a run file, listed by visit_fields; NoKeys: none
//   M(shape, config)    its parameters, uninitialised, with their roles and first weights; visit() names them
// and may have
//   kTurns              true: its queries and keys turn as in MixerShape::rope. kWhyNotTurns: why `positions: rope` cannot be
//   kOnlyCausal         true: it cannot read later positions, and `causal` is true unless a run file sets it to false
//   check(config, shape)     throws for what cannot be
//   warning(config, shape)   what a user should know of a config that works; may be empty
//   each_visibility(f)  where it is an attention: f(first head, heads, the keys that they see) for its heads
//   forms()             the matrices of its scores
//   metric_maps(x_bcd)  where its scores are a metric's: {q, p}, the maps of x whose products are the scores
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
