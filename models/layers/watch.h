// Observes a model at work, for models/inspection: while a Watch exists on a thread, mixers pass it the ops that exchange information
// between positions. Inspection therefore needs no second version of a mixer.
#pragma once
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/attention/attention.h"
#include "ops/products/products.h"
#include "ops/shapes/shape_ops.h"
#include "ops/shift_and_sum/shift_and_sum.h"

namespace ricci {

// A Watch is only for inspection, without a tape. `layer` is the address of the calling mixer.
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

  // attend and dispatch return the output of the op; the model continues with it.
  virtual Tensor attend(const void* /*layer*/, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Visibility& sees,
      const AttentionOptions& options) {
    return attention(q, k, v, sees, options);
  }
  virtual Tensor dispatch(const void* /*layer*/, const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) {
    return shift_and_sum(v_bcd, coef_bcx, options);
  }
  virtual void skip_heads(const void* /*layer*/, int64_t /*heads*/) {}         // called if the next heads of the layer have no keys
  virtual void take_output(const void* /*stack*/, const Tensor& /*h_bmd*/) {}  // called after each stack of blocks

 private:
  Watch* outer_;
};

// The ops as mixers call them for full sequences.
inline Tensor watched_attention(const void* layer, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Visibility& sees,
    const AttentionOptions& options) {
  Watch* const watch = Watch::active();
  return watch ? watch->attend(layer, q, k, v, sees, options) : attention(q, k, v, sees, options);
}
inline Tensor watched_shift_and_sum(const void* layer, const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) {
  Watch* const watch = Watch::active();
  return watch ? watch->dispatch(layer, v_bcd, coef_bcx, options) : shift_and_sum(v_bcd, coef_bcx, options);
}
inline Tensor watched_output(const void* stack, const Tensor& h_bmd) {
  if (Watch* const watch = Watch::active()) watch->take_output(stack, h_bmd);
  return h_bmd;
}

// The matrices M_n of a mixer's scores: r_cC = p_c M_n p_C^T / sqrt(k) for every head n, with p as a projection of the mixer's input or the
// input itself.
struct Forms {
  const char* name = "matrix of the scores";
  Tensor m_nkK{};  // f64 on the CPU; empty if the mixer has no matrices or they are the identity
  bool symmetric = false;
  bool positive = false;  // the score of p_c with itself is never below 0
  bool of_input = false;  // p is the input
  bool turned = false;    // the rotation by C - c is between the two factors of M_n
};

inline Tensor on_host(const Tensor& t) { return convert(to(t, Device::cpu), Dtype::f64); }

// Returns Wq_n^T Wk_n for every query head, from the weights (h k, d) and (g k, d) of two projections. h / g adjacent heads share a Wk.
inline Forms query_key_forms(const Tensor& q_weight, const Tensor& k_weight, int64_t heads) {
  const int64_t d = q_weight.shape()[1], k = q_weight.shape()[0] / heads, groups = k_weight.shape()[0] / k;
  const Tensor q_gnkd = reshape(on_host(q_weight), {groups, heads / groups, k, d}), k_gkd = reshape(on_host(k_weight), {groups, k, d});
  return {.name = "Wq Wk^T", .m_nkK = reshape(contract("gnkd,gkD->gndD", q_gnkd, k_gkd), {heads, d, d}), .of_input = true};
}

}  // namespace ricci
