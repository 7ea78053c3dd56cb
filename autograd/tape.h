// The tape: one Node per recorded op, in the order they ran. backward() goes from the end to the start (drawing: last lines).
//   Tape tape;                         records from here on this thread; no tape alive = inference
//   Tensor loss = model(ids, targets);
//   tape.backward(loss);               adds into Parameter::grad
#pragma once
#include <cstdio>
#include <memory>
#include <vector>

#include "autograd/arg.h"
#include "autograd/recording.h"
#include "core/memory/memory.h"

namespace ricci {

// One per input of the op, in order. Empty only where no gradient can exist: integer inputs, inputs on no tape.
using Grads = std::vector<Tensor>;

// All that the tape knows of one recorded op.
struct Node {
  const char* op;
  CallSite site;
  std::vector<int> inputs;   // slots (drawn at the end of this file); -1 is a constant
  std::vector<int> outputs;  // slots
  bool moves = false;        // its outputs are elements of its inputs (Moved in autograd/record.h)
  virtual ~Node() = default;
  virtual Grads backward(const std::vector<Tensor>& dys) const = 0;
  virtual int64_t kept_bytes() const = 0;
  virtual void each_kept(const std::function<void(const Tensor&)>& f) const = 0;
  // The first kept tensor that was changed since, or null.
  virtual const Tensor* changed() const = 0;
};

struct TapeOptions {
  bool find_nonfinite = false;  // look for NaN and infinity after every op, forward and backward; slow
};

class Tape final : public MemoryHolder, private RecordingScope {
 public:
  explicit Tape(TapeOptions options = {});
  ~Tape() override;  // frees everything the tape kept; on the thread that made it
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  static Tape* recording() { return RecordingScope::tape(); }  // the tape that records on this thread, or null
  const TapeOptions& options() const { return options_; }

  // Walks the tape from `loss` backwards and adds into the grad of every parameter it reaches. `dloss` is the gradient of
  // the loss, with which the walk starts: 1 for a scalar, if none is given. Everything kept is freed on the way. Errors: loss not on this
  // tape or not a scalar (without dloss), a second backward, an op without a backward, a kept tensor that was changed, or a gradient of
  // wrong number, shape or dtype.
  void backward(const Tensor& loss, const Tensor& dloss = {});
  // From several outputs at once, one gradient each.
  void backward(const std::vector<Tensor>& ys, const std::vector<Tensor>& dys);

  // A leaf that is no parameter, and its gradient after backward (zeros when nothing reached it). The gradient is summed and
  // returned in `sums`, f32 or the dtype of t.
  Tensor watch(const Tensor& t) { return watch(t, t.dtype()); }
  Tensor watch(const Tensor& t, Dtype sums);
  Tensor gradient_of(const Tensor& watched) const;

  // One line per op: name, shape, inputs, parameter paths, bytes kept.
  void print(std::FILE* file) const;
  int64_t kept_bytes() const;
  std::vector<const char*> op_names() const;
  void each_node(const std::function<void(const Node&)>& f) const;  // in the order they ran
  void each_held(const Visit& visit) const override;
  std::string doing() const override;

  // For record() and Arg.
  Tensor leaf(const Parameter& p);
  bool has(const Tensor& t) const { return t.tape_ == id_; }
  // True where one of the inputs is on this tape, so that op is to be recorded. Error: an input on another tape whose backward has
  // not ended, since its gradient would be lost.
  bool depends(const char* op, const std::vector<Arg>& inputs) const;
  Tensor take_gradient(const Node& node, int input);
  Dtype gradient_dtype(const Tensor& t) const { return has(t) ? slots_[static_cast<size_t>(t.slot_)].sum_dtype : t.dtype(); }
  Dtype gradient_dtype(const Node& node, int input) const;
  void push(std::unique_ptr<Node> node, const Arg* begin, const Arg* end, Tensor* first_output, size_t outputs);

 private:
  struct Slot {
    Shape shape;
    Dtype dtype;
    Dtype sum_dtype;  // the gradient's
    Device device;
    const Parameter* parameter = nullptr;
    bool watched = false;
    Tensor grad;
  };
  size_t slot_of(const Node& node, int input) const;  // error: the input is a constant
  void check_start(const Tensor& y, const Tensor& dy) const;
  Tensor add_slot(const Tensor& t, Dtype sums, const Parameter* parameter = nullptr);
  void run_backward(Node& node);
  void accept(const Node& node, size_t input, Tensor gradient);
  void check_finite(const Node& node, const Tensor& t, const char* what) const;

  uint32_t id_;
  TapeOptions options_;
  bool used_ = false;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Slot> slots_;
};

// For RICCI_TRACE: the op that made ys has run.
void trace_forward(const char* op, const std::vector<Arg>& inputs, const Tensor* ys, size_t outputs);

}  // namespace ricci

// Slots and nodes after y = gelu(linear(x, w)), where x is a constant and w a Parameter. A slot is one value on the tape: its shape, its
// dtype and, during backward, its gradient. A node is one op. It names slots by their numbers; -1 is a constant.
//
//   slots_   0: w   ---> Parameter w       1: h [c f]         2: y [c f]
//              \__________            ________/  \______         /
//                         \          /                  \       /
//   nodes_        0: linear (-1, 0) -> 1           1: gelu (1) -> 2
//                    keeps x and w                    keeps gelu'(h)
//
// backward(y) starts with the gradient of slot 2. Node 1 turns it into the gradient of slot 1, node 0 that into the gradient of w. It is
// added to Parameter::grad, and not to the slot. Each use of a parameter makes a new slot, and all of them point to the one Parameter: so
// the gradients of tied weights add up.
