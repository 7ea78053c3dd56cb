#include "ops/optimizers/optimizers.h"

#include "core/dims.h"
#include "core/error.h"
#include "cuda/trace.h"

namespace ricci {
namespace {

// `what` begins the message: "m of blocks.0.fc.bias is", "the step's rates are".
void check(const char* op, const std::string& what, const Tensor& t, const Shape& shape, Dtype dtype, Device device, const char* absent) {
  if (!t) fail("{}: {} {}", {op, what, absent});
  if (t.shape() == shape && t.dtype() == dtype && t.device() == device) return;
  fail("{}: {} {} {} on {}, expected {} {} on {}",
      {op, what, name_of(t.dtype()), show(t.shape()), name_of(t.device()), name_of(dtype), show(shape), name_of(device)});
}

void check(const char* op, const OptimizerTensor& t, const std::string& name, Moments moments) {
  const auto check_part = [&](const char* part, const Tensor& tensor, Dtype dtype) {
    check(op, std::string(part) + " of " + name + " is", tensor, t.value.shape(), dtype, t.value.device(), "empty");
  };
  check_part("grad", t.grad, t.master ? Dtype::f32 : t.value.dtype());
  if (moments.m) check_part("m", t.m, sums_of(t.value.dtype()));
  if (moments.v) check_part("v", t.v, sums_of(t.value.dtype()));
  if (!t.master) return;
  if (t.value.dtype() != Dtype::bf16) fail("{}: {} has master weights and is {}, expected bf16", {op, name, name_of(t.value.dtype())});
  check_part("master", t.master, Dtype::f32);
}

}  // namespace

void check_tensors(const char* op, const std::vector<OptimizerTensor>& tensors, const StepNumbers& now, Moments moments) {
  if (tensors.empty()) return;
  const Device device = tensors[0].value.device();
  check(op, "the step's rates are", now.rates, {3}, Dtype::f64, device, "missing");
  check(op, "the scale of the gradients is", now.gradient_scale, {}, Dtype::f64, device, "missing");
  const auto name_of_tensor = [&](size_t place) {
    return tensors[place].name.empty() ? "tensor " + std::to_string(place) : std::string(tensors[place].name);
  };
  for (size_t place = 0; place < tensors.size(); ++place) {
    const OptimizerTensor& t = tensors[place];
    if (!t.grad) continue;
    if (t.value.device() != device)
      fail("{}: {} is on {} and {} is on {}, expected one device",
          {op, name_of_tensor(place), name_of(t.value.device()), name_of_tensor(0), name_of(device)});
    check(op, t, name_of_tensor(place), moments);
  }
}

void end_update(const char* row, const std::vector<OptimizerTensor>& tensors, const char* file, int line) {
  if (tensors.empty()) return;
  int64_t bytes = 0;  // read and written
  for (const OptimizerTensor& t : tensors) {
    if (!t.grad) continue;
    t.value.written(file, line);
    for (const Tensor* part : {&t.value, &t.master, &t.m, &t.v, &t.grad}) bytes += (part == &t.grad ? 1 : 2) * part->bytes();
  }
  trace::end(row, "", tensors[0].value.device(), bytes);
}

}  // namespace ricci
