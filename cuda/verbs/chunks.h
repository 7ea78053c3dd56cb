// for_each_chunk(name, device, items, program): processes many tensors in few launches. An optimizer updates hundreds of small tensors, and
// a launch for each would take longer than the work. The elements are split into chunks of a fixed size. Each chunk is a row as in
// cuda/verbs/rows.h: a thread block on the GPU, a vectorized loop on the CPU.
//   struct Program {
//     using Item = ...;                                      the program's data for one tensor; item.n is its number of elements
//     static constexpr int64_t kBlockChunk, kLoopChunk;      elements of a chunk, on the GPU and on the CPU
//     template <class Row> HD void operator()(const Item& item, int64_t begin, Row row) const;      row.n elements, the first is `begin`
//   };
// CUDA_KERNEL(ChunkKernel<Program>) builds the program for the GPU.
#pragma once
#include <vector>

#include "core/tensor.h"
#include "cuda/verbs/rows.h"

namespace ricci {

// The tensors of one launch, at most kMax (limited by the size of kernel arguments). Chunks are numbered from the first tensor to the last.
template <class Item> struct TensorBatch {
  static constexpr int kMax = 3600 / (sizeof(Item) + sizeof(int64_t));
  int count = 0;
  int64_t first_chunk[kMax + 1] = {};  // first_chunk[count] is the batch's number of chunks
  Item item[kMax] = {};

  int64_t chunks() const { return first_chunk[count]; }

  struct Chunk {
    const Item& item;
    int64_t begin, end;  // elements of the item
  };
  HD Chunk chunk(int64_t number, int64_t size) const {
    const int k = find(number);
    const int64_t begin = (number - first_chunk[k]) * size, n = item[k].n;
    return {item[k], begin, begin + size < n ? begin + size : n};
  }

 private:
  // The index of a chunk's item.
  HD int find(int64_t chunk) const {
    int low = 0, high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (first_chunk[middle] <= chunk) low = middle;
      else high = middle;
    }
    return low;
  }
};

template <class Program> struct ChunkKernel {
  static constexpr int kThreads = 256;
  Program program;  // the first member: __builtin_clear_padding of g++ 12 overlooks an empty program after the batch
  TensorBatch<typename Program::Item> batch;
  __device__ void operator()() const {
    const auto chunk = batch.chunk(blockIdx.x, Program::kBlockChunk);
    program(chunk.item, chunk.begin, BlockRow{chunk.end - chunk.begin});
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

template <class Program>
void for_each_chunk(const char* name, Device device, const std::vector<typename Program::Item>& items, const Program& program);

#ifndef __CUDACC__

template <class Program> struct ChunkLoop {
  typename Program::Item item;
  Program program;
  HD void operator()(int64_t begin, int64_t end) const { program(item, begin, LoopRow{end - begin}); }
};

template <class Program>
void for_each_chunk(const char* name, Device device, const std::vector<typename Program::Item>& items, const Program& program) {
  for (const auto& batch : make_batches(items, device == Device::cpu ? Program::kLoopChunk : Program::kBlockChunk)) {
    if (device != Device::cpu) {
      launch(name, device, {batch.chunks(), ChunkKernel<Program>::kThreads}, ChunkKernel<Program>{program, batch});
      continue;
    }
    parallel_for(batch.chunks(), 1, [&](int64_t number, int64_t) {
      const auto chunk = batch.chunk(number, Program::kLoopChunk);
      run_vectorized(ChunkLoop<Program>{chunk.item, program}, chunk.begin, chunk.end);
    });
  }
}

#endif

}  // namespace ricci
