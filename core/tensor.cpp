// Tensors: memory, views, and the errors of their use.
#include "core/tensor.h"

#include "core/choice.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/memory/memory.h"

namespace ricci {

const char* name_of(Dtype dtype) { return choices(dtype)[static_cast<size_t>(dtype)]; }

const char* name_of(Device device) { return choices(device)[static_cast<size_t>(device)]; }

int64_t size_of(Dtype dtype) {
  constexpr int64_t bytes[] = {4, 8, 2, 8};
  return bytes[static_cast<int>(dtype)];
}

void Shape::push_back(int64_t extent) {
  if (extent < 0) fail("shape: extent {} is negative", {extent});
  if (rank_ == kMaxRank) fail("shape: more than {} extents", {kMaxRank});
  extent_[rank_++] = extent;
}

// The bytes of a tensor. The check replaces an extent of 0 by 1, so any product of the tensor's extents fits into an int64_t.
static int64_t checked_bytes(const Shape& shape, Dtype dtype) {
  int64_t bytes = size_of(dtype);
  for (int i = 0; i < shape.rank(); ++i)
    if (__builtin_mul_overflow(bytes, max<int64_t>(1, shape[i]), &bytes))
      fail("tensor: {} {} is larger than any memory", {show(shape), name_of(dtype)});
  return shape.size() == 0 ? 0 : bytes;
}

Tensor::Tensor(Shape shape, Dtype dtype, Device device, CallSite caller) : shape_(shape), dtype_(dtype), device_(device) {
  storage_ = StorageOwner(allocate_storage(checked_bytes(shape, dtype), device, caller));
}

void Tensor::require_unrecorded(const char* view, const char* op) const {
  if (tape_ == 0) return;
  fail("{}: {} is recorded on a tape; use {}() to pass its gradient on, or detached() to discard it", {view, show(shape_), op});
}

Tensor Tensor::reshaped(const Shape& shape) const {
  require_unrecorded("reshaped", "reshape");
  if (checked_bytes(shape, dtype_) != bytes()) fail("reshape: {} cannot become {}", {show(shape_), show(shape)});
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::rows(int64_t first, int64_t count) const {
  require_unrecorded("rows", "slice");
  if (shape_.rank() == 0 || first < 0 || count < 0 || count > shape_[0] - first)
    fail("rows: {} rows from row {} on do not fit in {}", {count, first, show(shape_)});
  Tensor t = *this;
  t.shape_.set(0, count);
  t.offset_ += shape_[0] ? first * (bytes() / shape_[0]) : 0;
  return t;
}

Tensor Tensor::detached() const {
  Tensor t = *this;
  t.tape_ = 0;
  t.slot_ = -1;
  return t;
}

bool Tensor::same_as(const Tensor& other) const {
  return raw() == other.raw() && shape_ == other.shape_ && dtype_ == other.dtype_ && tape_ == other.tape_ && slot_ == other.slot_;
}

void Tensor::fail_dtype(Dtype asked) const {
  fail("tensor {}: its elements are {}, expected {}", {show(shape_), name_of(dtype_), name_of(asked)});
}

void fail_not_floating(const Tensor& t) {
  if (!t) fail("expected a floating-point tensor, got an empty tensor");
  fail("expected a floating-point tensor, got {} {}", {name_of(t.dtype()), show(t.shape())});
}

}  // namespace ricci
