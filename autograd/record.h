// An op puts itself on the tape:
//   return record("softmax", {x_rc}, y_rc, keep(y_rc), [](const Tensor& dy_rc, const Tensor& y_rc) -> Grads { ... });
// keep(...) holds what the backward needs, counted in bytes and watched for changes; the lambda captures nothing and is
// called with the gradient of each output, then with what was kept. If some outputs got a gradient, the
// others arrive as zeros (integers: empty); if none did, the backward is not called.
#pragma once
#include <array>
#include <tuple>
#include <type_traits>

#include "autograd/tape.h"
#include "cuda/trace.h"

namespace ricci {

// A value as it is kept. Tensors are detached, so that a backward may view them (reshaped, rows); the rest stays as it is.
template <class T> const T& as_kept(const T& value) { return value; }
inline Tensor as_kept(const Tensor& t) { return t.detached(); }
inline Tensor as_kept(const Arg& x) { return x.detached(); }
inline std::vector<Tensor> as_kept(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) all.push_back(t.detached());
  return all;
}

template <class... Ts> auto keep(const Ts&... values) { return std::tuple<std::decay_t<decltype(as_kept(values))>...>(as_kept(values)...); }

// In place of the lambda: an op whose value cannot be differentiated. A backward that reaches it is an error.
struct NoBackward {};
inline constexpr NoBackward no_backward{};
[[noreturn]] void throw_no_backward(const Node& node);

template <size_t Outputs, class Kept, class Fn> class RecordedOp final : public Node {
  static constexpr size_t kKept = std::tuple_size_v<Kept>;
  static_assert(std::is_empty_v<Fn>, "a backward captures nothing: what it needs is in keep(...)");

 public:
  explicit RecordedOp(Kept kept) : kept_(std::move(kept)) {
    each_tensor([&](size_t i, const Tensor& t) { version_[i] += t.version(); });
  }
  Grads backward(const std::vector<Tensor>& dys) const override {
    if constexpr (std::is_same_v<Fn, NoBackward>) {
      throw_no_backward(*this);
    } else {
      return call(dys, std::make_index_sequence<Outputs>(), std::make_index_sequence<kKept>());
    }
  }
  int64_t kept_bytes() const override {
    int64_t bytes = 0;
    each_tensor([&](size_t, const Tensor& t) { bytes += t ? t.bytes() : 0; });
    return bytes;
  }
  void each_kept(const std::function<void(const Tensor&)>& f) const override {
    each_tensor([&](size_t, const Tensor& t) { f(t); });
  }
  const Tensor* changed() const override {
    std::array<uint64_t, kKept> now{};
    each_tensor([&](size_t i, const Tensor& t) { now[i] += t.version(); });
    const Tensor* found = nullptr;
    each_tensor([&](size_t i, const Tensor& t) {
      if (!found && now[i] != version_[i]) found = &t;
    });
    return found;
  }

 private:
  template <size_t... O, size_t... K>
  Grads call(const std::vector<Tensor>& dys, std::index_sequence<O...>, std::index_sequence<K...>) const {
    return Fn{}(dys[O]..., std::get<K>(kept_)...);
  }
  template <class F> void each_tensor(F f) const {
    size_t i = 0;
    auto visit = [&]<class T>(const T& value) {
      if constexpr (std::is_same_v<T, Tensor>) f(i, value);
      if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
        for (const Tensor& t : value) f(i, t);
      }
      ++i;
    };
    std::apply([&](const auto&... values) { (visit(values), ...); }, kept_);
  }

  Kept kept_;
  std::array<uint64_t, kKept> version_{};  // for a kept vector the sum of the versions: it grows if one changes
};

// Several outputs. They get their places on the tape and are returned.
template <size_t Outputs, class Kept, class Fn>
std::array<Tensor, Outputs> record(
    const char* op, const std::vector<Arg>& inputs, std::array<Tensor, Outputs> ys, Kept kept, Fn, bool moves = false) {
  if (trace::enabled) trace_forward(op, inputs, ys.data(), Outputs);
  Tape* tape = Tape::recording();
  if (!tape || !tape->depends(op, inputs)) return ys;
  auto node = std::make_unique<RecordedOp<Outputs, Kept, Fn>>(std::move(kept));
  node->op = op;
  node->moves = moves;
  tape->push(std::move(node), inputs.data(), inputs.data() + inputs.size(), ys.data(), Outputs);
  return ys;
}

template <class Kept, class Fn> Tensor record(const char* op, const std::vector<Arg>& inputs, Tensor y, Kept kept, Fn fn) {
  return record(op, inputs, std::array<Tensor, 1>{std::move(y)}, std::move(kept), fn)[0];
}

// An output whose elements are elements of the inputs: a view, or a copy in another order. Its gradient is summed in the dtype in which
// theirs is, so that a bf16 parameter beside f32 master weights gets a sum in f32 through a view of it too.
struct Moved {
  Tensor elements;
};
template <class Kept, class Fn> Tensor record(const char* op, const std::vector<Arg>& inputs, Moved y, Kept kept, Fn fn) {
  return record(op, inputs, std::array<Tensor, 1>{std::move(y.elements)}, std::move(kept), fn, true)[0];
}

// True where the op that is being differentiated needs the gradient of its input i; for skipping work whose result is not read. Only
// inside a backward.
bool wants_gradient(int input);

// The dtype in which the gradient of input i is summed: f32 for a bf16 parameter beside f32 master weights and for a view of it, else
// the input's own. A backward may return the gradient of any bf16 input in f32; the tape rounds it where the sum is bf16. In a forward,
// Tape::gradient_dtype answers the same. Error: no gradient of the input is wanted.
Dtype gradient_dtype(int input);

// Takes the sum of the gradients of input i so far out of its slot, so that a matrix product can add into it; the backward returns it
// again. Its dtype is gradient_dtype(i). It is empty if there is no sum yet, or another tensor shares its memory; the backward then
// returns a new one. Error: no gradient of the input is wanted.
Tensor take_gradient(int input);

}  // namespace ricci
