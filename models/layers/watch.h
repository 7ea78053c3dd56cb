// A view into the layers of a model, for models/inspection: the ops in which positions exchange information, and the matrices of
// their scores.
#pragma once
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/attention/attention.h"
#include "ops/products/products.h"
#include "ops/shapes/shape_ops.h"
#include "ops/shift_and_sum/shift_and_sum.h"

namespace ricci {

// While a Watch is alive on this thread, those ops go through it, and stacks hand it what they give. Only an inspection makes one,
// without a tape.
class Watch {
 public:
  Watch() : outer_(active()) { active() = this; }
  virtual ~Watch() { active() = outer_; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  static Watch*& active() {
    thread_local Watch* watch = nullptr;
    return watch;
  }

  // A mixer or another layer, whose ops come next.
  virtual void enter(const void* /*layer*/) {}
  // The ops: what they return goes on in their place.
  virtual Tensor attend(const Rows& q, const Rows& k, const Rows& v, const Visibility& sees, const AttentionOptions& options) {
    return attention(q, k, v, sees, options);
  }
  virtual Tensor dispatch(const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) {
    return shift_and_sum(v_bcd, coef_bcx, options);
  }
  // The next heads of the layer have no key at all.
  virtual void skip_heads(int64_t /*heads*/) {}
  // The output of a stack.
  virtual void leave(const void* /*stack*/, const Tensor& /*h_bmd*/) {}

 private:
  Watch* outer_;
};

// The ops as every mixer calls them on whole sequences.
inline Tensor watched_attention(const Rows& q, const Rows& k, const Rows& v, const Visibility& sees, const AttentionOptions& options) {
  Watch* const watch = Watch::active();
  return watch ? watch->attend(q, k, v, sees, options) : attention(q, k, v, sees, options);
}
inline Tensor watched_shift_and_sum(const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) {
  Watch* const watch = Watch::active();
  return watch ? watch->dispatch(v_bcd, coef_bcx, options) : shift_and_sum(v_bcd, coef_bcx, options);
}

// The matrices of a mixer's scores: r_cC = p_c M_n p_C^T / sqrt(k) for every head n, where p is a projection of the mixer's input, or the
// input itself.
struct Forms {
  const char* name = "matrix of the scores";
  Tensor m_nkK{};  // f64 on the CPU; empty if there are none, or they are the identity
  bool symmetric = false;
  bool positive = false;  // no p_c scores itself below 0
  bool of_input = false;  // p is the input
  bool turned = false;    // between the two factors of M_n comes the rotation by C - c, none where both positions are one
};

inline Tensor on_host(const Tensor& t) { return convert(to(t, Device::cpu), Dtype::f64); }

// Wq_n^T Wk_n of every query head, from the weights (h k, d) and (g k, d) of two projections, where h / g neighbouring heads share Wk_n.
inline Forms query_key_forms(const Tensor& q_weight, const Tensor& k_weight, int64_t heads) {
  const int64_t d = q_weight.shape()[1], k = q_weight.shape()[0] / heads, groups = k_weight.shape()[0] / k;
  const Tensor q_gnkd = reshape(on_host(q_weight), {groups, heads / groups, k, d}), k_gkd = reshape(on_host(k_weight), {groups, k, d});
  return {.name = "Wq Wk^T", .m_nkK = reshape(contract("gnkd,gkD->gndD", q_gnkd, k_gkd), {heads, d, d}), .of_input = true};
}

}  // namespace ricci
