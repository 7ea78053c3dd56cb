#include "ops/optimizers/optimizer_tensor.h"

#include "core/dims.h"
#include "core/error.h"

namespace ricci {
namespace {

struct Checker {
  const char* op;
  const std::vector<OptimizerTensor>& tensors;
  Moments moments;

  std::string name_of_tensor(size_t place) const {
    return tensors[place].name.empty() ? "tensor " + std::to_string(place) : std::string(tensors[place].name);
  }

  void like(size_t place, const char* what, const Tensor& t, const Tensor& value, Dtype dtype) const {
    if (t && t.shape() == value.shape() && t.dtype() == dtype && t.device() == value.device()) return;
    if (!t) fail("{}: {} of {} is empty", {op, what, name_of_tensor(place)});
    fail("{}: {} of {} is {} {} on {}, expected {} {} on {}",
        {op, what, name_of_tensor(place), name_of(t.dtype()), show(t.shape()), name_of(t.device()), name_of(dtype), show(value.shape()),
            name_of(value.device())});
  }

  void operator()(size_t place) const {
    const OptimizerTensor& t = tensors[place];
    const Dtype state = sums_of(t.value.dtype());
    if (t.value.device() != tensors[0].value.device())
      fail("{}: {} is on {}, {} on {}",
          {op, name_of_tensor(place), name_of(t.value.device()), name_of_tensor(0), name_of(tensors[0].value.device())});
    like(place, "grad", t.grad, t.value, t.master ? Dtype::f32 : t.value.dtype());
    if (moments.m) like(place, "m", t.m, t.value, state);
    if (moments.v) like(place, "v", t.v, t.value, state);
    if (!t.master) return;
    if (t.value.dtype() != Dtype::bf16)
      fail("{}: {} is {}, which has no master weights", {op, name_of_tensor(place), name_of(t.value.dtype())});
    like(place, "master", t.master, t.value, Dtype::f32);
  }
};

void check_number(const char* op, const char* what, const Tensor& t, const Shape& shape, Device device) {
  if (t && t.shape() == shape && t.dtype() == Dtype::f64 && t.device() == device) return;
  if (!t) fail("{}: {} missing", {op, what});
  fail("{}: {} {} {} on {}, expected f64 {} on {}",
      {op, what, name_of(t.dtype()), show(t.shape()), name_of(t.device()), show(shape), name_of(device)});
}

}  // namespace

void check_tensors(const char* op, const std::vector<OptimizerTensor>& tensors, const StepNumbers& now, Moments moments) {
  if (tensors.empty()) return;
  check_number(op, "the step's rates are", now.rates, {3}, tensors[0].value.device());
  check_number(op, "the scale of the gradients is", now.gradient_scale, {}, tensors[0].value.device());
  const Checker check{op, tensors, moments};
  for (size_t place = 0; place < tensors.size(); ++place)
    if (tensors[place].grad) check(place);
}

void mark_written(const std::vector<OptimizerTensor>& tensors, const char* file, int line) {
  for (const OptimizerTensor& t : tensors)
    if (t.grad) t.value.written(file, line);
}

}  // namespace ricci
