// An op puts itself on the tape:
//   return record("softmax", {x_rc}, y_rc, keep(y_rc), [](const Tensor& dy_rc, const Tensor& y_rc) -> Grads { ... });
// The backward function is called with the gradient of each output, followed by the kept values. It captures nothing. Captured tensors
// could not be counted or checked for changes. If backward reaches only some outputs, the gradients of the others are zeros (empty for
// integers).
#pragma once
#include <algorithm>
#include <array>
#include <tuple>
#include <type_traits>

#include "autograd/tape.h"
#include "cuda/trace.h"

namespace ricci {

// A value in the form that the tape keeps. Tensors are detached, so a backward function can use reshaped() and rows().
template <class T> const T& as_kept(const T& value) { return value; }
inline Tensor as_kept(const Tensor& t) { return t.detached(); }
inline Tensor as_kept(const Arg& x) { return x.detached(); }
inline std::vector<Tensor> as_kept(std::vector<Tensor> tensors) {
  for (Tensor& t : tensors) t = t.detached();
  return tensors;
}

template <class... Ts> auto keep(const Ts&... values) { return std::tuple<std::decay_t<decltype(as_kept(values))>...>(as_kept(values)...); }

// Passed instead of a lambda, for an op that cannot be differentiated. backward() throws if it reaches the op.
struct NoBackward {};
inline constexpr NoBackward no_backward{};
[[noreturn]] void fail_no_backward(const Node& node);

void trace_forward(const char* op, const std::vector<Arg>& inputs, std::span<const Tensor> outputs);  // for RICCI_TRACE

template <size_t Outputs, class Kept, class Fn> class RecordedOp final : public Node {
  static_assert(std::is_empty_v<Fn>, "a backward captures nothing: pass what it needs to keep(...)");

 public:
  RecordedOp(const char* name, bool moves_inputs, Kept kept) : Node(name, moves_inputs), kept_(std::move(kept)) {}

  Grads backward(const std::vector<Tensor>& dys) const override {
    return call(dys, std::make_index_sequence<Outputs>(), std::make_index_sequence<std::tuple_size_v<Kept>>());
  }
  void each_kept(const std::function<void(const Tensor&)>& f) const override {
    const auto visit = [&]<class T>(const T& value) {
      if constexpr (std::is_same_v<T, Tensor>) f(value);
      if constexpr (std::is_same_v<T, std::vector<Tensor>>) std::for_each(value.begin(), value.end(), f);
    };
    std::apply([&](const auto&... values) { (visit(values), ...); }, kept_);
  }

 private:
  template <size_t... O, size_t... K>
  Grads call(const std::vector<Tensor>& dys, std::index_sequence<O...>, std::index_sequence<K...>) const {
    if constexpr (std::is_same_v<Fn, NoBackward>) fail_no_backward(*this);
    else return Fn{}(dys[O]..., std::get<K>(kept_)...);
  }

  Kept kept_;
};

// Records that the op ran with these inputs and outputs. Assigns slots to the outputs and returns the outputs.
template <size_t Outputs, class Kept, class Fn>
std::array<Tensor, Outputs> record(
    const char* op, const std::vector<Arg>& inputs, std::array<Tensor, Outputs> ys, Kept kept, Fn, bool moves_inputs = false) {
  if (trace::enabled) trace_forward(op, inputs, ys);
  Tape* const tape = Tape::recording();
  if (tape && tape->depends(op, inputs))
    tape->push(std::make_unique<RecordedOp<Outputs, Kept, Fn>>(op, moves_inputs, std::move(kept)), inputs, ys);
  return ys;
}
template <class Kept, class Fn> Tensor record(const char* op, const std::vector<Arg>& inputs, Tensor y, Kept kept, Fn fn) {
  return record(op, inputs, std::array<Tensor, 1>{std::move(y)}, std::move(kept), fn)[0];
}

// An output that contains only elements of the inputs: a view, or a copy in a different order. Its gradient is summed in the dtype of the
// inputs' gradients, so the f32 sums of a bf16 parameter are not rounded on the way.
struct Moved {
  Tensor elements;
};
template <class Kept, class Fn> Tensor record(const char* op, const std::vector<Arg>& inputs, Moved y, Kept kept, Fn fn) {
  return record(op, inputs, std::array<Tensor, 1>{std::move(y.elements)}, std::move(kept), fn, true)[0];
}

// ---- Inside a backward

// True if the gradient of input i is used. If not, the backward function can return an empty tensor.
bool wants_gradient(int input);

// The dtype that sums the gradient of input i. It is f32 for a bf16 parameter with f32 master weights (autograd/parameter.h) and for views
// of it, else the input's dtype. A backward function can return f32 for any bf16 input; the tape rounds it if the sum is bf16. During the
// forward pass, call Tape::gradient_dtype instead. Error: input i is a constant.
Dtype gradient_dtype(int input);

// Removes the gradient summed so far for input i from its slot. A matrix product can then add to it in place, and the backward function
// returns the sum. Empty if nothing was summed yet or another tensor shares the memory. The backward function then returns a new tensor.
// Error: input i is a constant.
Tensor take_gradient(int input);

}  // namespace ricci
