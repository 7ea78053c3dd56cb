// The code that all puzzles share. A puzzle is an incomplete kernel or gradient, and a check on the emulator:
//   PUZZLE(3, "block sum") { ... launch(...); expect("sum", sum, {8256}); }
#pragma once
#include <vector>

#include "core/error.h"
#include "core/tensor.h"
#include "cuda/device/device.h"
#include "cuda/launch.h"

namespace ricci::puzzle {

struct Puzzle {
  int number;
  const char* name;
  void (*check)();  // throws Error if the puzzle is not solved
};

// Adds the puzzle to the program's list.
struct Entry {
  explicit Entry(const Puzzle& puzzle);
};

#define PUZZLE(number, name)                                                  \
  static void check();                                                        \
  static const ::ricci::puzzle::Entry entry_of_puzzle({number, name, check}); \
  static void check()

// Memory of the emulated GPU, filled with NaN to show elements that no thread writes.
inline Tensor gpu_memory(int64_t count) { return Tensor({count}, Dtype::f32, Device::cuda_emulated); }
inline Tensor on_gpu(const std::vector<float>& values) {
  return tensor_of(values, {static_cast<int64_t>(values.size())}, Device::cuda_emulated);
}

// The numbers first, first + 1, ...
inline std::vector<float> count_from(int first, size_t count) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(first) + static_cast<float>(i);
  return numbers;
}

// Throws Error if an element differs by more than `tolerance`: "y[3] is nan, expected 4".
void expect(const char* name, const Tensor& got, const std::vector<float>& expected, float tolerance = 0);

}  // namespace ricci::puzzle
