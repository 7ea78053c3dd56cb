// What the files of this folder share. Shapes: qkv and dqkv [b, c, 3 d], y and dy [b, c, d]; lse_bnc is the logarithm of each
// query's sum of exp(score), in the type sums are held in.
#pragma once
#include "core/tensor.h"
#include "ops/attention/attention.h"
#include "ops/attention/band.h"

namespace ricci::attention_kernels {

struct Outputs {
  Tensor y_bcd, lse_bnc;
};

Problem problem_of(const char* op, const Tensor& qkv_bcx, const AttentionOptions& options);  // checks both
WeightDropout draw_dropout(double p, int64_t heads);                                         // of all batches; takes one random stream when p is not 0
Outputs forward(const Problem& problem, const Tensor& qkv);
Tensor backward(const Problem& problem, const Tensor& dy, const Tensor& qkv, const Outputs& out);  // dqkv

// On the CPU, and on cuda and cuda_emulated; no extent is 0.
void forward_cpu(const Problem& problem, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc);
void forward_gpu(const Problem& problem, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc);
void backward_cpu(const Problem& problem, const Tensor& dy, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc, const Tensor& dqkv);
void backward_gpu(const Problem& problem, const Tensor& dy, const Tensor& qkv, const Tensor& y, const Tensor& lse_bnc, const Tensor& dqkv);

}  // namespace ricci::attention_kernels
