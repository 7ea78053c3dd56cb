// The implementations of attention as the host calls them.
#pragma once
#include <type_traits>
#include <vector>

#include "core/tensor.h"
#include "ops/attention/attention.h"
#include "ops/attention/problem.h"

namespace ricci::attention_kernels {

// Queries, keys and values; or their gradients, where the gradients of views of the same columns share one buffer.
struct Views {
  Rows q, k, v;
};

// lse_bnc is the logarithm of each query's sum of exp(score), in the type that sums are held in; infinite for a query that
// sees no key.
struct Outputs {
  Tensor y_bcd, lse_bnc;
};

template <class T> HeadRows<T> head_rows(const Rows& rows) {
  const Shape& shape = rows.tensor.shape();
  T* const data = rows.tensor.data<std::remove_const_t<T>>();
  return {data ? data + rows.offset : data, shape[2], shape[1] * shape[2], rows.group};  // an empty tensor has no memory
}

// The tensor, and the columns in it, of each of the views q, k and v (0, 1, 2): what remains of them on the tape.
struct Layout {
  int tensor[3];  // numbers among the distinct tensors of the views, which are the inputs of the op
  int64_t offset[3], width[3], group;
  bool same(int a, int b) const { return tensor[a] == tensor[b] && offset[a] == offset[b] && width[a] == width[b]; }
  Views views(const std::vector<Tensor>& tensors) const;
  // Memory for the gradients of the tensors: zeros where no view has a column.
  std::vector<Tensor> gradients(const std::vector<Tensor>& tensors) const;
};

// The op's arguments after they have been checked.
struct Checked {
  Problem problem;
  std::vector<Arg> inputs;  // the tensors of the views, each once
  Layout layout;
  Views views() const { return layout.views({inputs.begin(), inputs.end()}); }
};
Checked check(const char* op, const Rows& q, const Rows& k, const Rows& v, const Visibility& sees, const AttentionOptions& options);

WeightDropout draw_dropout(double p, int64_t heads);  // heads: of all sequences. Takes one random stream when p is not 0

// Any extent may be 0.
Outputs forward(const Problem& problem, const Views& inputs);
void backward(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients);

// On the CPU, and on cuda and cuda_emulated; there is at least one query and one key. Every element of y and lse and of the
// gradients' columns is written.
void forward_cpu(const Problem& problem, const Views& inputs, const Outputs& out);
void forward_gpu(const Problem& problem, const Views& inputs, const Outputs& out);
void backward_cpu(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients);
void backward_gpu(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients);

// The implementation that a GPU takes. The views are all that the forward, or the backward, reads and writes. In bf16 only `blocks` goes
// without tensor cores: where it must, one line on stderr reports it.
enum class GpuPath : uint8_t {
  flash,     // flash/: in one pass, for some widths of heads
  padded,    // flash/ on copies of the views, whose heads have the next such width
  products,  // wide/: matrix products and a softmax of whole rows, for wider heads
  blocks     // gpu/: any width and dtype
};
GpuPath gpu_path(const Problem& problem, const std::vector<Rows>& views);

// padded: also for views that do not begin at a multiple of 16 bytes. The further columns are zeros, which change no score and no output.
bool padding_fits(const Problem& problem, Device device);
void padded_forward(const Problem& problem, const Views& inputs, const Outputs& out);
void padded_backward(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients);

// products: the scores of some sequences at a time are in memory, as f32, and their weights, as bf16.
bool products_fit(const Problem& problem);
void products_forward(const Problem& problem, const Views& inputs, const Outputs& out);
void products_backward(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients);

void blocks_forward(const Problem& problem, const Views& inputs, const Outputs& out);
void blocks_backward(const Problem& problem, const Tensor& dy, const Views& inputs, const Outputs& out, const Views& gradients);

}  // namespace ricci::attention_kernels
