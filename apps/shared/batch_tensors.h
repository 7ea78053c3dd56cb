// Batches of ids as tensors on a device.
#pragma once
#include <vector>

#include "cuda/device.h"
#include "data/batches.h"

namespace ricci::apps {

inline Tensor ids_tensor(const std::vector<int64_t>& ids, const Shape& shape, Device device) {
  Tensor t(shape, Dtype::i64);
  for (size_t i = 0; i < ids.size(); ++i) t.data<int64_t>()[i] = ids[i];
  return to(t, device);
}

struct BatchTensors {
  Tensor ids_bc, targets_bc;
};

inline BatchTensors tensors_of(const Batch& batch, Device device) {
  const Shape shape{batch.batch, batch.context};
  return {ids_tensor(batch.ids_bc, shape, device), ids_tensor(batch.targets_bc, shape, device)};
}

}  // namespace ricci::apps
