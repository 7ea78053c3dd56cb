#include "models/inspection/observation.h"

#include "models/inspection/layers.h"

namespace ricci {
namespace {

// The factors of the values in shift_and_sum. The op is linear in the values, so the factors are its results for unit vectors.
Tensor dispatching_table(const Tensor& coef_bcx, int64_t heads) {
  const int64_t b = coef_bcx.shape()[0], c = coef_bcx.shape()[1];
  const Tensor units_bcnC = zeros({b, c, heads, c}, Dtype::f64, Device::cpu);
  for (int64_t i = 0; i < b * c * heads; ++i) units_bcnC.data<double>()[i * c + i / heads % c] = 1;
  const Tensor table_bcx = shift_and_sum(reshape(units_bcnC, {b, c, heads * c}), on_host(coef_bcx), {.heads = heads});
  return permute(reshape(table_bcx, {b, c, heads, c}), {0, 2, 1, 3});
}

}  // namespace

Tensor Observing::attend(const void* layer, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Visibility& sees,
    const AttentionOptions& options) {
  add_heads(layer, attention_weights(q, k, sees, options), sees.cell);
  return Watch::attend(layer, q, k, v, sees, options);
}

Tensor Observing::dispatch(const void* layer, const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) {
  const int64_t b = coef_bcx.shape()[0], c = coef_bcx.shape()[1], levels = coef_bcx.shape()[2] / options.heads;
  seen[layer].coefficients_bncr = permute(reshape(on_host(coef_bcx), {b, c, options.heads, levels}), {0, 2, 1, 3});
  add_heads(layer, dispatching_table(coef_bcx, options.heads), 1);
  return Watch::dispatch(layer, v_bcd, coef_bcx, options);
}

void Observing::skip_heads(const void* layer, int64_t heads) {
  auto& all = seen[layer].heads;
  all.resize(all.size() + static_cast<size_t>(heads));
}

void Observing::add_heads(const void* layer, const Tensor& table_bncC, int64_t key_scale) {
  const Shape& s = table_bncC.shape();
  for (int64_t n = 0; n < s[1]; ++n) seen[layer].heads.push_back({reshape(slice(table_bncC, 1, n, 1), {s[0], s[2], s[3]}), key_scale});
}

std::vector<Observation> observe(const Model& model, const Batch& batch) {
  Observing watch;
  model.hidden(batch);
  std::vector<Observation> all;
  for (const MixingLayer& layer : model.layers())
    if (layer.kind != "join") all.push_back(std::move(watch.seen[layer.layer]));
  return all;
}

}  // namespace ricci
