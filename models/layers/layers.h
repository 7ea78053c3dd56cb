// The layers of all families. Members are parameters, operator() is the formula, and visit() names the parameters. A layer made with a seed
// samples its initial values immediately, f32 on the CPU; two layers need different seeds. The layers of a Model are made with an Init or a
// MapInit instead, and Model::init samples all parameters by their paths (models/layers/init.h).
#pragma once
#include <concepts>

#include "autograd/arg.h"
#include "core/choice.h"
#include "models/layers/init.h"
#include "ops/elements/dropout.h"
#include "ops/products/products.h"
#include "ops/rows/layer_norm.h"
#include "ops/rows/rms_norm.h"

namespace ricci {

// y = x W^T + bias. The weight has the shape (outputs, inputs); the bias can be empty.
struct Linear {
  Parameter weight{.role = Role::matrix}, bias{.role = Role::bias};
  Linear() = default;
  Linear(int64_t inputs, int64_t outputs, bool with_bias, const MapInit& init) {
    weight = new_parameter({outputs, inputs}, Role::matrix, init.weight);
    weight.row_blocks = {outputs};
    if (with_bias) bias = new_parameter({outputs}, Role::bias, init.bias);
  }
  // Samples weights and biases uniformly from [-1/sqrt(inputs), 1/sqrt(inputs)), as in PyTorch (Preset::msa).
  Linear(int64_t inputs, int64_t outputs, uint64_t seed)
      : Linear(inputs, outputs, true, InitialWeights{.preset = Preset::msa}.map(inputs)) {
    draw_parameters(*this, seed);
  }
  template <std::same_as<bool> B> Linear(int64_t inputs, int64_t outputs, B) = delete;  // "no bias" in PyTorch, but a seed here
  Tensor operator()(const Arg& x) const { return linear(x, weight, bias); }
  template <class V> void visit(V&& v) { v("weight", weight, "bias", bias); }
};

// The largest size that a model's config allows. The product of two such sizes fits into 64 bits.
inline constexpr int64_t kLargestSize = INT32_MAX;

enum class NormKind : uint8_t {
  layer,
  rms,  // without a mean and without a bias
};
constexpr auto choices(NormKind) { return std::array{"layer", "rms"}; }

struct NormConfig {
  NormKind kind = NormKind::layer;
  bool bias = true;  // only for a layer norm
  double eps = 1e-5;
};

// A norm over each row, of either kind.
struct LayerNorm {
  Parameter weight{.role = Role::gain, .init = {Init::Kind::constant, 1}}, bias{.role = Role::bias};
  NormKind kind = NormKind::layer;
  double eps = 1e-5;
  LayerNorm() = default;
  LayerNorm(int64_t d, const NormConfig& config) : kind(config.kind), eps(config.eps) {
    weight.value = Tensor({d});
    if (config.bias && kind == NormKind::layer) bias.value = Tensor({d});
  }
  explicit LayerNorm(int64_t d) : LayerNorm(d, NormConfig{}) { draw_parameters(*this, 0); }  // ones and zeros, not random
  Tensor operator()(const Arg& x) const { return kind == NormKind::rms ? rms_norm(x, weight, eps) : layer_norm(x, weight, bias, eps); }
  // Returns {x + branch, its norm}.
  std::array<Tensor, 2> operator()(const Arg& x, const Arg& branch) const {
    return kind == NormKind::rms ? residual_rms_norm(x, branch, weight, eps) : residual_layer_norm(x, branch, weight, bias, eps);
  }
  template <class V> void visit(V&& v) { v("weight", weight, "bias", bias); }
};

// A table of rows: token embeddings (v, d) or learned positions (ctx, d).
struct Table {
  Parameter weight{.role = Role::table};
  Table() = default;
  Table(int64_t rows, int64_t d, Init init) { weight = new_parameter({rows, d}, Role::table, init); }
  Table(int64_t rows, int64_t d, uint64_t seed) : Table(rows, d, normal_init(1)) {
    draw_parameters(*this, seed);
  }  // N(0, 1), as in PyTorch
  template <std::same_as<bool> B> Table(int64_t rows, int64_t d, B) = delete;
  template <class V> void visit(V&& v) { v("weight", weight); }
};

// Switches dropout on or off for this thread while it exists.
class Training {
 public:
  explicit Training(bool on = true) : outer_(active()) { active() = on; }
  ~Training() { active() = outer_; }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;
  static bool& active() {
    thread_local bool on = false;
    return on;
  }

 private:
  bool outer_;
};

// Applies dropout with probability p in training; returns x itself when dropout is off.
inline Tensor drop(const Arg& x, double p) { return Training::active() && p > 0 ? dropout(x, p) : Tensor(x); }

}  // namespace ricci
