#include "autograd/tape.h"

#include <string>
#include <utility>

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

thread_local const Node* differentiating = nullptr;
thread_local Tape* walking = nullptr;  // the tape that `differentiating` is on

std::string place(const char* op, const CallSite& site) {
  return std::string(op) + " (" + site.file + ":" + std::to_string(site.line) + ")";
}
std::string place(const Node& node) { return place(node.op, node.site); }

int64_t bytes_of(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& t : tensors) bytes += t ? t.bytes() : 0;
  return bytes;
}

// The op whose backward runs, and its tape. They are saved and restored, because recompute() runs the backward of an inner tape inside
// the backward of an op.
class Differentiating {
 public:
  Differentiating(const Node& node, Tape& tape)
      : outer_(std::exchange(differentiating, &node)), outer_tape_(std::exchange(walking, &tape)) {}
  ~Differentiating() {
    differentiating = outer_;
    walking = outer_tape_;
  }
  Differentiating(const Differentiating&) = delete;
  Differentiating& operator=(const Differentiating&) = delete;

 private:
  const Node* outer_;
  Tape* outer_tape_;
};

// Closes a tape at the end of its backward, whether it succeeds or not.
struct Closing {
  uint32_t number;
  ~Closing() { close_tape(number); }
};

}  // namespace

Arg::Arg(const Parameter& p, CallSite where)
    : Tensor(Tape::recording() && p.value && !p.frozen ? Tape::recording()->leaf(p) : p.value), site(where) {}

void trace_forward(const char* op, const std::vector<Arg>& inputs, const Tensor* ys, size_t outputs) {
  int64_t bytes = 0;
  for (const Arg& x : inputs) bytes += x ? x.bytes() : 0;
  for (size_t i = 0; i < outputs; ++i) bytes += ys[i].bytes();
  trace::end(op, "", ys[0].device(), bytes);
}

Tape::Tape(TapeOptions options) : RecordingScope(this), id_(open_tape()), options_(options) { trace::end("before the tape"); }

Tape::~Tape() { close_tape(id_); }

bool wants_gradient(int input) { return differentiating->inputs[static_cast<size_t>(input)] >= 0; }

Tensor take_gradient(int input) { return walking->take_gradient(*differentiating, input); }

Dtype gradient_dtype(int input) { return walking->gradient_dtype(*differentiating, input); }

size_t Tape::slot_of(const Node& node, int input) const {
  const int slot = node.inputs[static_cast<size_t>(input)];
  if (slot < 0) fail("backward of {}: it asks about the gradient of input {}, which is a constant", {place(node), input});
  return static_cast<size_t>(slot);
}

Dtype Tape::gradient_dtype(const Node& node, int input) const { return slots_[slot_of(node, input)].sum_dtype; }

Tensor Tape::take_gradient(const Node& node, int input) {
  Slot& slot = slots_[slot_of(node, input)];
  Tensor& total = slot.parameter ? slot.parameter->grad : slot.grad;
  return total && total.unique() ? std::move(total) : Tensor();
}

void throw_no_backward(const Node& node) { fail("backward of {}: this op has no backward", {place(node)}); }

Tensor Tape::add_slot(const Tensor& t, Dtype sums, const Parameter* parameter) {
  Tensor on_tape = t;
  on_tape.tape_ = id_;
  on_tape.slot_ = static_cast<int32_t>(slots_.size());
  slots_.push_back({t.shape(), t.dtype(), sums, t.device(), parameter, false, {}});
  return on_tape;
}

Tensor Tape::leaf(const Parameter& p) { return add_slot(p.value, p.sum_dtype(), &p); }

Tensor Tape::watch(const Tensor& t, Dtype sums) {
  Tensor leaf = add_slot(t, sums);
  slots_.back().watched = true;
  return leaf;
}

Tensor Tape::gradient_of(const Tensor& watched) const {
  if (!has(watched) || !slots_[static_cast<size_t>(watched.slot_)].watched)
    fail("gradient_of: {} is not watched by this tape", {show(watched.shape())});
  const Tensor& grad = slots_[static_cast<size_t>(watched.slot_)].grad;
  return grad ? grad : zeros(watched.shape(), gradient_dtype(watched), watched.device());
}

bool Tape::depends(const char* op, const std::vector<Arg>& inputs) const {
  bool found = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Arg& x = inputs[i];
    found |= has(x);
    if (x.tape_ == 0 || has(x) || x.dtype() == Dtype::i64 || !is_open(x.tape_)) continue;
    fail("{}: input {} {} is recorded on another tape, whose backward has not ended: its gradient would be lost here; detached() gives it "
         "up",
        {place(op, x.site), i, show(x.shape())});
  }
  return found;
}

void Tape::push(std::unique_ptr<Node> node, const Arg* begin, const Arg* end, Tensor* first_output, size_t outputs) {
  if (used_) fail("{}: recorded on a tape after its backward", {node->op});
  node->site = begin->site;
  Dtype sums_of_moved = begin->dtype();
  for (const Arg* x = begin; x != end; ++x) {
    node->inputs.push_back(has(*x) ? x->slot_ : -1);
    if (gradient_dtype(*x) != x->dtype()) sums_of_moved = gradient_dtype(*x);
  }
  for (size_t i = 0; i < outputs; ++i) {
    if (options_.find_nonfinite) check_finite(*node, first_output[i], "its result");
    first_output[i] = add_slot(first_output[i], node->moves ? sums_of_moved : first_output[i].dtype());
    node->outputs.push_back(first_output[i].slot_);
  }
  nodes_.push_back(std::move(node));
}

void Tape::check_finite(const Node& node, const Tensor& t, const char* what) const {
  if (t.dtype() == Dtype::i64 || !t) return;
  if (const int64_t bad = count_nonfinite(t)) fail("{}: {} of {} elements of {} are NaN or infinite", {place(node), bad, t.size(), what});
}

void Tape::accept(const Node& node, size_t input, Tensor gradient) {
  if (node.inputs[input] < 0) return;
  Slot& slot = slots_[static_cast<size_t>(node.inputs[input])];
  if (slot.dtype == Dtype::i64) return;
  if (!gradient) fail("backward of {}: no gradient for input {}", {place(node), input});
  const bool wide = slot.dtype == Dtype::bf16 && gradient.dtype() == Dtype::f32;
  if ((gradient.dtype() != slot.dtype && !wide) || gradient.device() != slot.device)
    fail("backward of {}: the gradient of input {} is {} on {}, the input {} on {}",
        {place(node), input, name_of(gradient.dtype()), name_of(gradient.device()), name_of(slot.dtype), name_of(slot.device)});
  if (!(gradient.shape() == slot.shape)) gradient = sum_to(gradient, slot.shape, wide ? gradient.dtype() : slot.sum_dtype);
  if (wide) gradient = convert(gradient, slot.sum_dtype);
  if (options_.find_nonfinite) check_finite(node, gradient, "a gradient it returned");
  Tensor& total = slot.parameter ? slot.parameter->grad : slot.grad;
  if (!total) {
    total = convert(gradient.detached(), slot.sum_dtype);
  } else {
    if (!total.unique()) {
      Tensor own = like(total);
      copy(own, total);
      total = own;
    }
    add_to(total, gradient);
  }
}

void Tape::run_backward(Node& node) {
  std::vector<Tensor> dys;
  bool reached = false;
  for (int output : node.outputs) {
    dys.push_back(std::move(slots_[static_cast<size_t>(output)].grad));
    slots_[static_cast<size_t>(output)].grad = {};
    reached |= static_cast<bool>(dys.back());
  }
  if (!reached) return;
  if (const Tensor* t = node.changed())
    fail("backward of {}: a tensor {} it kept was changed at {}:{} after the forward",
        {place(node), show(t->shape()), t->storage()->writer_file, t->storage()->writer_line});
  const Differentiating now(node, *this);
  for (size_t i = 0; i < dys.size(); ++i) {
    const Slot& slot = slots_[static_cast<size_t>(node.outputs[i])];
    if (!dys[i] && slot.dtype != Dtype::i64) dys[i] = zeros(slot.shape, slot.dtype, slot.device);
  }
  int64_t bytes = trace::enabled ? node.kept_bytes() + bytes_of(dys) : 0;
  Grads gradients = node.backward(dys);
  if (trace::enabled) bytes += bytes_of(gradients);
  if (gradients.size() != node.inputs.size())
    fail("backward of {}: {} gradients for {} inputs", {place(node), gradients.size(), node.inputs.size()});
  dys.clear();
  const Device device = slots_[static_cast<size_t>(node.outputs[0])].device;
  for (size_t i = 0; i < gradients.size(); ++i) accept(node, i, std::move(gradients[i]));
  trace::end(node.op, "backward", device, bytes);
}

// Error: dy does not fit y, or y is not on this tape.
void Tape::check_start(const Tensor& y, const Tensor& dy) const {
  if (!has(y)) fail("backward: the loss {} was not recorded on this tape", {show(y.shape())});
  if (!dy) fail("backward: the gradient of the loss {} is empty", {show(y.shape())});
  if (dy.shape() == y.shape() && dy.dtype() == y.dtype() && dy.device() == y.device()) return;
  fail("backward: the gradient {} {} on {} does not fit the loss {} {} on {}",
      {name_of(dy.dtype()), show(dy.shape()), name_of(dy.device()), name_of(y.dtype()), show(y.shape()), name_of(y.device())});
}

void Tape::backward(const Tensor& loss, const Tensor& dloss) {
  if (!dloss && loss.size() != 1) fail("backward: the loss must be a scalar, got {}", {show(loss.shape())});
  Tensor start = dloss;
  if (!dloss) fill(start = like(loss.detached()), 1);
  backward(std::vector<Tensor>{loss}, {start});
}

void Tape::backward(const std::vector<Tensor>& ys, const std::vector<Tensor>& dys) {
  if (used_) fail("backward: already called on this tape; what it kept is freed");
  if (ys.size() != dys.size()) fail("backward: {} outputs, but {} gradients of them", {ys.size(), dys.size()});
  const NoTape unrecorded;
  for (size_t i = 0; i < ys.size(); ++i) check_start(ys[i], dys[i]);
  for (size_t i = 0; i < ys.size(); ++i) {
    const Tensor &y = ys[i], &dy = dys[i];
    Tensor& grad = slots_[static_cast<size_t>(y.slot_)].grad;
    if (!grad) {
      grad = convert(dy.detached(), gradient_dtype(y));
    } else {  // the same value is asked for twice
      const Tensor sum = like(grad);
      copy(sum, grad);
      add_to(sum, dy);
      grad = sum;
    }
  }
  used_ = true;
  const Closing closing{id_};
  while (!nodes_.empty()) {
    run_backward(*nodes_.back());
    nodes_.pop_back();
  }
}

int64_t Tape::kept_bytes() const {
  int64_t bytes = 0;
  for (const auto& node : nodes_) bytes += node->kept_bytes();
  return bytes;
}

std::vector<const char*> Tape::op_names() const {
  std::vector<const char*> names;
  for (const auto& node : nodes_) names.push_back(node->op);
  return names;
}

void Tape::each_node(const std::function<void(const Node&)>& f) const {
  for (const auto& node : nodes_) f(*node);
}

void Tape::each_held(const Visit& visit) const {
  for (const Slot& slot : slots_) {
    visit(slot.grad, HeldFor::gradients);
    if (!slot.parameter) continue;
    visit(slot.parameter->value, HeldFor::parameters);
    visit(slot.parameter->grad, HeldFor::gradients);
  }
  for (const auto& node : nodes_) node->each_kept([&](const Tensor& t) { visit(t, HeldFor::activations); });
}

std::string Tape::doing() const {
  if (differentiating) return "in the backward of " + place(*differentiating);
  return nodes_.empty() ? "" : "after " + place(*nodes_.back());
}

void Tape::print(std::FILE* file) const {
  for (const auto& node : nodes_) {
    std::string line, inputs;
    for (int output : node->outputs)
      line += (line.empty() ? "%" : ", %") + std::to_string(output) + show(slots_[static_cast<size_t>(output)].shape);
    for (int input : node->inputs) {
      const Parameter* p = input < 0 ? nullptr : slots_[static_cast<size_t>(input)].parameter;
      const std::string slot = p && !p->path.empty() ? p->path : "%" + std::to_string(input);
      inputs += " " + (input < 0 ? "constant" : slot);
    }
    std::fprintf(
        file, "%-24s %-22s <-%s   keeps %lld bytes\n", line.c_str(), node->op, inputs.c_str(), static_cast<long long>(node->kept_bytes()));
  }
}

}  // namespace ricci
