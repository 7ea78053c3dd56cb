// Many tensors in few launches: their elements are cut into chunks of a fixed size, numbered from the first tensor to the
// last. A batch is what one launch takes: as many tensors as a kernel's arguments have room for.
#pragma once
#include <vector>

#include "core/tensor.h"

namespace ricci {

// Item is what a kernel needs to know of one tensor; item.n is its number of elements.
template <class Item> struct TensorBatch {
  static constexpr int kMax = 3600 / (sizeof(Item) + sizeof(int64_t));
  int count = 0;
  int64_t first_chunk[kMax + 1] = {};  // first_chunk[count] is the number of chunks of the batch
  Item item[kMax];

  int64_t chunks() const { return first_chunk[count]; }

  // Which item a chunk belongs to.
  HD int find(int64_t chunk) const {
    int low = 0, high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (first_chunk[middle] <= chunk)
        low = middle;
      else
        high = middle;
    }
    return low;
  }
};

template <class Item> std::vector<TensorBatch<Item>> make_batches(const std::vector<Item>& items, int64_t chunk_size) {
  std::vector<TensorBatch<Item>> batches;
  for (const Item& item : items) {
    if (batches.empty() || batches.back().count == TensorBatch<Item>::kMax) batches.emplace_back();
    TensorBatch<Item>& batch = batches.back();
    batch.item[batch.count++] = item;
    batch.first_chunk[batch.count] = batch.first_chunk[batch.count - 1] + (item.n + chunk_size - 1) / chunk_size;
  }
  return batches;
}

}  // namespace ricci
