// Samples initial weights, and adds the identity to matrices that start near it.
#include "models/layers/init.h"

#include "core/dims.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "core/random.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/metric/metric.h"

namespace ricci {

namespace {

// The index of element (i, i) of a k x k matrix.
int64_t on_diagonal(Diagonal diagonal, int64_t i, int64_t k) {
  if (diagonal == Diagonal::of_matrices) return i * k + i;
  return diagonal == Diagonal::of_packed_upper ? packed_upper(i, i, k) : packed_lower(i, i);
}

void add_identity(const Tensor& value, Diagonal diagonal) {
  const bool whole = diagonal == Diagonal::of_matrices;
  const int64_t k = whole ? value.shape()[-1] : packed_width(value.shape()[-1]);
  if (k < 0) fail("initial weights: the shape {} does not consist of packed triangles", {show(value.shape())});
  const int64_t size = whole ? k * k : packed_size(k);
  for (int64_t first = 0; first < value.size(); first += size)
    for (int64_t i = 0; i < k; ++i) value.data<float>()[first + on_diagonal(diagonal, i, k)] += 1;
}

void draw_values(const Parameter& p, uint64_t seed) {
  const Philox random{seed, hash_bytes(p.path)};
  const auto value = static_cast<float>(p.init.value);
  switch (p.init.kind) {
    case Init::Kind::constant: return fill(p.value, p.init.value);
    case Init::Kind::normal: return fill_normal(p.value.data<float>(), p.value.size(), 0.0f, value, random);
    case Init::Kind::uniform: return fill_uniform(p.value.data<float>(), p.value.size(), -value, value, random);
  }
}

}  // namespace

void draw(Parameter& p, uint64_t seed) {
  draw_values(p, seed);
  if (p.init.diagonal != Diagonal::none) add_identity(p.value, p.init.diagonal);
}

}  // namespace ricci
