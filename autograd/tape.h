// The tape records every op as it runs. backward() then goes from the last op to the first and turns the gradients of outputs into the
// gradients of inputs. The tape is a flat list, not a graph: execution order is the only order that backward() needs.
//
// After y = gelu(linear(x, w)), with a constant x and a Parameter w:
//
//   slots_   0: w   ---> Parameter w       1: h [c f]         2: y [c f]
//              \__________            ________/  \______         /
//                         \          /                  \       /
//   nodes_        0: linear (-1, 0) -> 1           1: gelu (1) -> 2
//                    keeps x and w                    keeps gelu'(h)
//
// A slot is one value: its shape, its dtype and, during backward, its gradient. A node is one op. It refers to slots by index; -1 means a
// constant. backward(y) starts with the gradient of slot 2. Node 1 turns it into the gradient of slot 1, and node 0 turns that into the
// gradient of w. This gradient is added to Parameter::grad. Each use of a parameter makes a new slot that points to the one Parameter, so
// the gradients of tied weights add up.
#pragma once
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "autograd/arg.h"
#include "autograd/recording.h"
#include "core/memory/memory.h"

namespace ricci {

// The gradients of an op's inputs, in order. A gradient is empty only if none can exist: for integers and for constants.
using Grads = std::vector<Tensor>;

// One recorded op, made by record() (autograd/record.h).
struct Node {
  const char* op;
  bool moves;                                  // see Moved in autograd/record.h
  CallSite site = {};                          // the caller of the op
  std::vector<int> inputs = {}, outputs = {};  // slots
  std::vector<uint64_t> versions = {};         // versions of the kept tensors when the op was recorded

  Node(const char* name, bool moves_inputs) : op(name), moves(moves_inputs) {}
  virtual ~Node() = default;
  virtual Grads backward(const std::vector<Tensor>& dys) const = 0;
  virtual void each_kept(const std::function<void(const Tensor&)>& f) const = 0;
  int64_t kept_bytes() const;
  const Tensor* changed() const;  // the first kept tensor that was changed after the op was recorded, or null
};

struct TapeOptions {
  bool find_nonfinite = false;  // look for NaN and infinity after every op, forward and backward; slow
};

class Tape final : public MemoryHolder, private RecordingScope {
 public:
  // ---- For programs
  //   Tape tape;                                         records on this thread until it is destroyed
  //   const Tensor loss = model.loss({ids, targets});
  //   tape.backward(loss);                               adds to the grad of every parameter that the loss depends on
  explicit Tape(TapeOptions options = {});
  ~Tape() override;  // must run on the thread that made the tape
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // `dloss` is the gradient of the loss, by default 1. The backward pass frees each op's kept tensors, so a tape supports only one backward
  // pass. Errors: the loss is not on this tape; it is not a scalar and dloss is missing; backward was already called; one parameter has a
  // path and another has none; an op has no backward function; a kept tensor was changed; a backward function returns the wrong number of
  // gradients, a wrong shape or a wrong dtype.
  void backward(const Tensor& loss, const Tensor& dloss = {});
  void backward(const std::vector<Tensor>& ys, const std::vector<Tensor>& dys);  // from multiple outputs, each with its gradient

  // Records a value that gets a gradient without being a parameter. The gradient is summed and returned in the dtype `sums`, by default t's
  // dtype. It is zero if backward did not reach the value.
  Tensor watch(const Tensor& t, std::optional<Dtype> sums = {});
  Tensor gradient_of(const Tensor& watched) const;

  // Prints a line per op: output, op, inputs, and the bytes of its kept tensors, excluding parameters. Error: backward has freed the ops.
  void print(std::FILE* file) const;

  // ---- For ops
  static Tape* recording() { return RecordingScope::tape(); }  // the tape that records on this thread, or null
  bool has(const Tensor& t) const { return t.tape_ == id_; }
  // True if an input is on this tape: the op must then be recorded. Error: an input is on another tape that still waits for its backward
  // pass; the input's gradient would be lost.
  bool depends(const char* op, const std::vector<Arg>& inputs) const;
  void push(std::unique_ptr<Node> node, const std::vector<Arg>& inputs, std::span<Tensor> outputs);
  // The dtype that sums the gradient of t.
  Dtype gradient_dtype(const Tensor& t) const { return has(t) ? slot(t.slot_).sum_dtype : t.dtype(); }

  // ---- For reports
  const TapeOptions& options() const { return options_; }
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }  // in the order they ran

 private:
  friend struct Arg;
  friend Tensor take_gradient(int input);
  friend Dtype gradient_dtype(int input);
  struct Slot {
    Shape shape;
    Dtype dtype;
    Dtype sum_dtype;  // the dtype of the gradient
    Device device;
    const Parameter* parameter = nullptr;
    bool watched = false;
    Tensor grad = {};
    Tensor& total() { return parameter ? parameter->grad : grad; }  // the sum so far
  };
  Slot& slot(int number) { return slots_[static_cast<size_t>(number)]; }
  const Slot& slot(int number) const { return slots_[static_cast<size_t>(number)]; }
  Slot& slot_of_input(const Node& node, int input);  // error: the input is a constant
  Tensor add_slot(const Tensor& t, Dtype sums, const Parameter* parameter = nullptr);
  void check_start(const Tensor& y, const Tensor& dy) const;
  void check_paths() const;
  void run_backward(const Node& node);
  std::vector<Tensor> take_output_gradients(const Node& node);
  void accept(const Node& node, size_t input, Tensor gradient);
  static void check_gradient(const Node& node, size_t input, const Slot& x, const Tensor& gradient);
  static Tensor fit(Tensor gradient, const Slot& x);
  static void add_gradient(Slot& x, const Tensor& gradient);
  void check_finite(const Node& node, const Tensor& t, const char* role) const;
  void each_tensor(const Visit& visit) const override;
  std::string current_work() const override;

  uint32_t id_;
  TapeOptions options_;
  bool used_ = false;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Slot> slots_;
};

}  // namespace ricci
