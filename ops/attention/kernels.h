// One attention problem as the implementations see it, and their host functions. Kernels get a Problem and pointers: tensors cannot be
// passed to a GPU.
#pragma once
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/dtype.h"
#include "core/philox.h"
#include "core/tensor.h"
#include "ops/attention/attention.h"

namespace ricci::attention_kernels {

// 32-bit distances are limited to kFar. In practice they are smaller: gpu/ measures them within a block, and flash_fits keeps every t and
// cell j below half of kFar.
constexpr int kFar = 1 << 30;
HD int bounded(int64_t n) { return static_cast<int>(between<int64_t>(-kFar, n, kFar)); }

// Dropout of the weights p_tj: each weight stays with probability 1 - p and is then divided by 1 - p. The choice is a function of the
// random stream and of (head, t, j), so the backward pass makes the same choice.
struct WeightDropout {
  PhiloxSource random{};
  uint32_t dropped_below = 0;  // 2^32 p; 0 without dropout
  double keep_factor = 1;      // 1 / (1 - p)
  int64_t first_head = 0;      // the index of head 0 in the full batch, if this is a micro-batch
  HD bool active() const { return dropped_below > 0; }
  // The factor of the weight with this index in the full batch (Problem::weight).
  template <class A> HD A factor(int64_t index) const {
    return random.philox().bits(static_cast<uint64_t>(index)) < dropped_below ? A(0) : A(keep_factor);
  }
};

// A `head` below is the index of one query head of one sequence: b n + its index among the n heads.
struct Problem {
  int64_t batches, queries, keys, heads, width;  // b, c, C, n, k
  Visibility sees;
  double score_scale;  // z: scores are z q . k
  WeightDropout dropout{};
  const int64_t* lengths = nullptr;  // the number of keys of each sequence, on the device; all keys if null
  int64_t group = 1;                 // adjacent query heads that share a head of keys and values

  HD int64_t d() const { return heads * width; }
  // The problem with only the heads of keys and values. Query heads group * h to group * h + group - 1 share head h.
  HD Problem of_key_heads() const {
    Problem keys = *this;
    keys.heads = heads / group;
    keys.group = 1;
    return keys;
  }
  // The number of keys of a head's sequence, without the padding after them.
  HD int64_t keys_of(int64_t head) const {
    if (!lengths) return keys;
    return between<int64_t>(0, lengths[head / heads], keys);
  }
  // The index of the weight of query t and key 0. The weights of the other keys follow.
  HD int64_t weight(int64_t head, int64_t t) const { return ((dropout.first_head + head) * queries + t) * keys; }
};

// Pointers to the queries, keys, values or outputs of all heads, or to their gradients. At each position, a head has `width` contiguous
// elements.
template <class T> struct HeadRows {
  T* data;                // at sequence 0, position 0, head 0
  int64_t row, sequence;  // the number of elements between positions, and between sequences
  int64_t group = 1;      // adjacent query heads that share a head here
  bool operator==(const HeadRows&) const = default;

  // Position 0 of the head that query head `head` uses.
  HD T* of_head(const Problem& problem, int64_t head) const {
    const int64_t n = head % problem.heads, shared = group == 1 ? n : n / group;
    return data + head / problem.heads * sequence + shared * problem.width;
  }
};

// ---- On the host

// Queries, keys and values, or their gradients. The gradients of equal slices share one buffer.
struct QueryKeyValue {
  ColumnSlice q, k, v;
};

// lse_bnc is the logarithm of each query's sum of exp(score), in the accumulator's dtype. It is infinite for a query that sees no key.
struct Outputs {
  Tensor y_bcd, lse_bnc;
};

template <class T> HeadRows<T> head_rows(const ColumnSlice& slice) {
  const Shape& shape = slice.tensor.shape();
  T* const data = slice.tensor.data<std::remove_const_t<T>>();
  return {data ? data + slice.offset : data, shape[2], shape[1] * shape[2], slice.group};  // an empty tensor has no memory
}

// The positions of q, k and v (0, 1, 2) in their tensors. The tape keeps this and the tensors.
struct Layout {
  int tensor[3];  // an index into the inputs of the op: the distinct tensors
  int64_t offset[3], width[3], group;
  bool same(int a, int b) const { return tensor[a] == tensor[b] && offset[a] == offset[b] && width[a] == width[b]; }
  QueryKeyValue slices(const std::vector<Tensor>& tensors) const;
  // Memory for the gradients of the tensors, zeroed only if some columns belong to no slice.
  std::vector<Tensor> gradients(const std::vector<Tensor>& tensors) const;
};

struct Checked {
  Problem problem;
  std::vector<Arg> inputs;  // the distinct tensors
  Layout layout;
  QueryKeyValue slices() const { return layout.slices({inputs.begin(), inputs.end()}); }
};
Checked check(const char* op, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Visibility& sees,
    const AttentionOptions& options);

WeightDropout draw_dropout(double p, int64_t heads);  // heads: their number over all sequences. Uses one random stream if p is not 0

// Any extent can be 0.
Outputs forward(const Problem& problem, const QueryKeyValue& inputs);
void backward(const Problem& problem, const Tensor& dy, const QueryKeyValue& inputs, const Outputs& out, const QueryKeyValue& gradients);

// The implementations need at least one query and one key. They write every element of y and lse, and of the gradients' columns.
using Forward = void(const Problem& problem, const QueryKeyValue& inputs, const Outputs& out);
using Backward = void(
    const Problem& problem, const Tensor& dy, const QueryKeyValue& inputs, const Outputs& out, const QueryKeyValue& gradients);
Forward forward_cpu, blocks_forward, flash_forward, padded_forward;
Backward backward_cpu, blocks_backward, flash_backward, padded_backward;

// The implementation for a GPU. `slices` are all tensors that the forward or backward pass accesses.
enum class GpuPath : uint8_t {
  flash,   // flash/: bf16 on tensor cores, for some head widths
  padded,  // flash/ on copies with wider heads, and for slices that do not start at a multiple of 16 bytes
  blocks   // gpu/: any width and dtype, without tensor cores. The first bf16 problem that needs it prints a line on stderr
};
GpuPath gpu_path(const Problem& problem, const std::vector<ColumnSlice>& slices);

}  // namespace ricci::attention_kernels
