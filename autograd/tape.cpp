// Ops run after the ops that produce their inputs, so traversing the list in reverse visits every node after all its users, without
// sorting. A value with many users gets a gradient from each of them, and the tape adds these gradients.
#include "autograd/tape.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

std::string place(const char* op, const CallSite& site) {
  return std::string(op) + " (" + site.file + ":" + std::to_string(site.line) + ")";
}
std::string place(const Node& node) { return place(node.op, node.site); }

// The node that runs its backward function on this thread, and its tape. recompute() runs the backward pass of an inner tape inside the
// backward function of an op, and then restores the outer ones.
struct Current {
  Tape* tape = nullptr;
  const Node* node = nullptr;
};
thread_local Current current;
class Running {
 public:
  Running(Tape& tape, const Node& node) : outer_(std::exchange(current, {&tape, &node})) {}
  ~Running() { current = outer_; }
  Running(const Running&) = delete;

 private:
  Current outer_;
};

void close_tape(uint32_t id);
// Closes a tape at the end of its backward pass, even if the pass fails. From then on, its tensors are constants for other tapes.
struct Closing {
  uint32_t id;
  ~Closing() { close_tape(id); }
};

template <class Tensors> int64_t bytes_of(const Tensors& tensors) {
  int64_t bytes = 0;
  for (const Tensor& t : tensors) bytes += t ? t.bytes() : 0;
  return bytes;
}

}  // namespace

// ---- Backward

void Tape::backward(const Tensor& loss, const Tensor& dloss) {
  if (!dloss && loss.size() != 1) fail("backward: the loss must be a scalar, got {}", {show(loss.shape())});
  Tensor start = dloss;
  if (!dloss) fill(start = like(loss.detached()), 1);
  backward(std::vector<Tensor>{loss}, {start});
}

void Tape::backward(const std::vector<Tensor>& ys, const std::vector<Tensor>& dys) {
  if (used_) fail("backward: already called on this tape; the tape has freed its kept tensors");
  if (ys.size() != dys.size()) fail("backward: expected {} gradients, one per output, got {}", {ys.size(), dys.size()});
  const NoTape unrecorded;
  for (size_t i = 0; i < ys.size(); ++i) check_start(ys[i], dys[i]);
  check_paths();
  for (size_t i = 0; i < ys.size(); ++i) add_gradient(slot(ys[i].slot_), dys[i]);
  used_ = true;
  const Closing closing{id_};
  while (!nodes_.empty()) {
    run_backward(*nodes_.back());
    nodes_.pop_back();  // frees its kept tensors
  }
}

// Throws if dy does not fit y, or if y is not on this tape.
void Tape::check_start(const Tensor& y, const Tensor& dy) const {
  if (!has(y)) fail("backward: the loss {} was not recorded on this tape", {show(y.shape())});
  if (!dy) fail("backward: the gradient of the loss {} is empty", {show(y.shape())});
  if (dy.shape() == y.shape() && dy.dtype() == y.dtype() && dy.device() == y.device()) return;
  fail("backward: the gradient {} {} on {} does not fit the loss {} {} on {}",
      {name_of(dy.dtype()), show(dy.shape()), name_of(dy.device()), name_of(y.dtype()), show(y.shape()), name_of(y.device())});
}

// Throws for a parameter that no visit line names. No optimizer would update it.
void Tape::check_paths() const {
  if (std::none_of(slots_.begin(), slots_.end(), [](const Slot& x) { return x.parameter && !x.parameter->path.empty(); })) return;
  for (const auto& node : nodes_)
    for (const int input : node->inputs)
      if (const Parameter* p = input < 0 ? nullptr : slot(input).parameter; p && p->path.empty())
        fail("backward of {}: parameter {} has no path, so no optimizer updates it; name the parameter in its module's visit line",
            {place(*node), show(p->value.shape())});
}

void Tape::run_backward(const Node& node) {
  const Running running(*this, node);
  std::vector<Tensor> dys = take_output_gradients(node);
  if (dys.empty()) return;
  if (const Tensor* t = node.changed())
    fail("backward of {}: the kept tensor {} was changed at {}:{} after the forward pass",
        {place(node), show(t->shape()), t->storage()->writer_file, t->storage()->writer_line});
  int64_t bytes = trace::enabled ? node.kept_bytes() + bytes_of(dys) : 0;
  Grads gradients = node.backward(dys);
  if (trace::enabled) bytes += bytes_of(gradients);
  if (gradients.size() != node.inputs.size())
    fail("backward of {}: returned {} gradients, expected {}, one per input", {place(node), gradients.size(), node.inputs.size()});
  dys.clear();
  for (size_t i = 0; i < gradients.size(); ++i) accept(node, i, std::move(gradients[i]));
  trace::end(node.op, "backward", slot(node.outputs[0]).device, bytes);
}

// The gradients of the node's outputs, zeros for outputs that the backward pass did not reach. Empty if it reached no output.
std::vector<Tensor> Tape::take_output_gradients(const Node& node) {
  std::vector<Tensor> dys;
  for (int output : node.outputs) dys.push_back(std::exchange(slot(output).grad, {}));
  if (std::none_of(dys.begin(), dys.end(), [](const Tensor& dy) { return bool(dy); })) return {};
  for (size_t i = 0; i < dys.size(); ++i) {
    const Slot& y = slot(node.outputs[i]);
    if (!dys[i] && y.dtype != Dtype::i64) dys[i] = zeros(y.shape, y.dtype, y.device);
  }
  return dys;
}

// Adds the gradient that a backward function returned for one input.
void Tape::accept(const Node& node, size_t input, Tensor gradient) {
  if (node.inputs[input] < 0 || slot(node.inputs[input]).dtype == Dtype::i64) return;
  Slot& x = slot(node.inputs[input]);
  check_gradient(node, input, x, gradient);
  gradient = fit(gradient, x);
  if (options_.find_nonfinite) check_finite(node, gradient, "a gradient it returned");
  add_gradient(x, gradient);
}

// Checks a returned gradient. It can be f32 for a bf16 input, so a long sum is rounded only once.
void Tape::check_gradient(const Node& node, size_t input, const Slot& x, const Tensor& gradient) {
  if (!gradient) fail("backward of {}: no gradient for input {}", {place(node), input});
  const bool is_wide = x.dtype == Dtype::bf16 && gradient.dtype() == Dtype::f32;
  if ((gradient.dtype() == x.dtype || is_wide) && gradient.device() == x.device) return;
  fail("backward of {}: the gradient of input {} is {} on {}, expected {} on {}",
      {place(node), input, name_of(gradient.dtype()), name_of(gradient.device()), name_of(x.dtype), name_of(x.device)});
}

// The gradient in the shape and dtype of the slot's sum. If the op broadcast its input, every copy of an element has a gradient, and the
// element gets their sum.
Tensor Tape::fit(Tensor gradient, const Slot& x) {
  const bool is_wide = gradient.dtype() != x.dtype;
  if (!(gradient.shape() == x.shape)) gradient = sum_to(gradient, x.shape, is_wide ? gradient.dtype() : x.sum_dtype);
  return is_wide ? convert(gradient, x.sum_dtype) : gradient;
}

void Tape::add_gradient(Slot& x, const Tensor& gradient) {
  Tensor& total = x.total();
  if (!total) {
    total = convert(gradient.detached(), x.sum_dtype);
    return;
  }
  if (total.storage()->is_shared()) {  // shared with the gradient of another value, for example after y = a + b
    const Tensor shared = total;
    copy(total = like(shared), shared);
  }
  add_to(total, gradient);
}

void Tape::check_finite(const Node& node, const Tensor& t, const char* role) const {
  if (t.dtype() == Dtype::i64 || !t) return;
  if (const int64_t bad = count_nonfinite(t)) fail("{}: {} of {} elements of {} are NaN or infinite", {place(node), bad, t.size(), role});
}

// ---- Recording

namespace {

// The ids of the tapes, on all threads, that have not finished their backward pass. Their tensors expect a gradient.
std::mutex lock;  // guards last_id and open_tapes
uint32_t last_id = 0;
std::vector<uint32_t>& open_tapes() {
  static std::vector<uint32_t>& all = *new std::vector<uint32_t>;  // outlives every tape
  return all;
}
uint32_t open_tape() {
  const std::lock_guard locked(lock);
  return open_tapes().emplace_back(++last_id);
}
void close_tape(uint32_t id) {
  const std::lock_guard locked(lock);
  std::erase(open_tapes(), id);
}
bool is_open(uint32_t id) {
  const std::lock_guard locked(lock);
  return std::find(open_tapes().begin(), open_tapes().end(), id) != open_tapes().end();
}

}  // namespace

Tape::Tape(TapeOptions options) : RecordingScope(this), id_(open_tape()), options_(options) { trace::end("before the tape"); }

Tape::~Tape() { close_tape(id_); }

Arg::Arg(const Parameter& p, CallSite where) : Tensor(p.value), site(where) {
  Tape* const tape = Tape::recording();
  if (tape && p.value && !p.frozen) Tensor::operator=(tape->add_slot(p.value, p.sum_dtype(), &p));
}

Tensor Tape::add_slot(const Tensor& t, Dtype sums, const Parameter* parameter) {
  Tensor on_tape = t;
  on_tape.tape_ = id_;
  on_tape.slot_ = static_cast<int32_t>(slots_.size());
  slots_.push_back({t.shape(), t.dtype(), sums, t.device(), parameter});
  return on_tape;
}

bool Tape::depends(const char* op, const std::vector<Arg>& inputs) const {
  bool found = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Arg& x = inputs[i];
    found |= has(x);
    if (x.tape_ == 0 || has(x) || x.dtype() == Dtype::i64 || !is_open(x.tape_)) continue;
    fail("{}: input {} {} is recorded on another tape that still waits for its backward pass, so the gradient of the input would be lost "
         "here; use detached() to discard it",
        {place(op, x.site), i, show(x.shape())});
  }
  return found;
}

void Tape::push(std::unique_ptr<Node> node, const std::vector<Arg>& inputs, std::span<Tensor> outputs) {
  if (used_) fail("{}: recorded on a tape after the tape's backward pass", {node->op});
  node->site = inputs[0].site;
  node->each_kept([&](const Tensor& t) { node->versions.push_back(t ? t.storage()->version : 0); });
  Dtype sums_of_moved = inputs[0].dtype();
  for (const Arg& x : inputs) {
    node->inputs.push_back(has(x) ? x.slot_ : -1);
    if (gradient_dtype(x) != x.dtype()) sums_of_moved = gradient_dtype(x);
  }
  for (Tensor& y : outputs) {
    if (options_.find_nonfinite) check_finite(*node, y, "its result");
    y = add_slot(y, node->moves ? sums_of_moved : y.dtype());
    node->outputs.push_back(y.slot_);
  }
  nodes_.push_back(std::move(node));
}

Tensor Tape::watch(const Tensor& t, std::optional<Dtype> sums) {
  Tensor watched = add_slot(t, sums.value_or(t.dtype()));
  slots_.back().watched = true;
  return watched;
}

Tensor Tape::gradient_of(const Tensor& watched) const {
  if (!has(watched) || !slot(watched.slot_).watched) fail("gradient_of: tensor {} is not watched by this tape", {show(watched.shape())});
  const Tensor& grad = slot(watched.slot_).grad;
  return grad ? grad : zeros(watched.shape(), gradient_dtype(watched), watched.device());
}

// ---- Called by a running backward function (autograd/record.h)

bool wants_gradient(int input) { return current.node->inputs[static_cast<size_t>(input)] >= 0; }

Tape::Slot& Tape::slot_of_input(const Node& node, int input) {
  const int number = node.inputs[static_cast<size_t>(input)];
  if (number < 0) fail("backward of {}: asked for the gradient of input {}, but that input is a constant", {place(node), input});
  return slot(number);
}

Dtype gradient_dtype(int input) { return current.tape->slot_of_input(*current.node, input).sum_dtype; }

Tensor take_gradient(int input) {
  Tape::Slot& x = current.tape->slot_of_input(*current.node, input);
  Tensor& total = x.total();
  return total && !total.storage()->is_shared() ? std::move(total) : Tensor();
}

void fail_no_backward(const Node& node) { fail("backward of {}: this op has no backward function", {place(node)}); }

// ---- Reports

int64_t Node::kept_bytes() const {
  int64_t bytes = 0;
  each_kept([&](const Tensor& t) { bytes += t ? t.bytes() : 0; });
  return bytes;
}

const Tensor* Node::changed() const {
  const Tensor* found = nullptr;
  size_t i = 0;
  each_kept([&](const Tensor& t) {
    const uint64_t before = versions[i++];
    if (!found && t && t.storage()->version != before) found = &t;
  });
  return found;
}

void Tape::each_tensor(const Visit& visit) const {
  for (const Slot& x : slots_) {
    visit(x.grad, HeldFor::gradients);
    if (!x.parameter) continue;
    visit(x.parameter->value, HeldFor::parameters);
    visit(x.parameter->grad, HeldFor::gradients);
  }
  for (const auto& node : nodes_) node->each_kept([&](const Tensor& t) { visit(t, HeldFor::activations); });
}

std::string Tape::current_work() const {
  if (current.node) return "in the backward of " + place(*current.node);
  return nodes_.empty() ? "" : "after " + place(*nodes_.back());
}

void Tape::print(std::FILE* file) const {
  if (used_) fail("print: backward has freed the ops of this tape; call print before backward");
  std::set<const Storage*> parameters;
  for (const Slot& x : slots_)
    if (x.parameter) parameters.insert(x.parameter->value.storage());
  for (const auto& node : nodes_) {
    int64_t kept = 0;
    node->each_kept([&](const Tensor& t) { kept += t && !parameters.contains(t.storage()) ? t.bytes() : 0; });
    std::string outputs, inputs;
    for (int output : node->outputs) outputs += (outputs.empty() ? "%" : ", %") + std::to_string(output) + show(slot(output).shape);
    for (int input : node->inputs) {
      const Parameter* p = input < 0 ? nullptr : slot(input).parameter;
      const std::string name = p && !p->path.empty() ? p->path : "%" + std::to_string(input);
      inputs += " " + (input < 0 ? "constant" : name);
    }
    std::fprintf(file, "%-24s %-22s <-%s   keeps %lld bytes\n", outputs.c_str(), node->op, inputs.c_str(), static_cast<long long>(kept));
  }
}

void trace_forward(const char* op, const std::vector<Arg>& inputs, std::span<const Tensor> outputs) {
  trace::end(op, "", outputs[0].device(), bytes_of(inputs) + bytes_of(outputs));
}

}  // namespace ricci
