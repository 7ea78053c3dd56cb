// A Tensor is a small value: a shape, an element type, a device, and memory that copies of the tensor share. Its elements are always
// contiguous, in row-major order, so kernels need no strides. Every file includes this header, so it includes nothing heavy.
#pragma once
#include "core/dtype.h"
#include "core/storage.h"

namespace ricci {

class Tensor {
 public:
  Tensor() = default;  // empty: it has no memory, and is false as a condition
  // The elements are not initialized. Errors: the device is not available; out of memory, with the caller's name.
  explicit Tensor(Shape shape, Dtype dtype = Dtype::f32, Device device = Device::cpu, CallSite caller = {});
  explicit operator bool() const { return storage() != nullptr; }

  const Shape& shape() const { return shape_; }
  int64_t size() const { return shape_.size(); }
  Dtype dtype() const { return dtype_; }
  Device device() const { return device_; }
  int64_t bytes() const { return size() * size_of(dtype_); }

  // The address of the first element, on the tensor's device. Error: T is not the tensor's element type.
  template <class T> T* data() const {
    if (dtype_of<T> != dtype_) fail_dtype(dtype_of<T>);
    return static_cast<T*>(raw());
  }
  void* raw() const { return storage() ? static_cast<char*>(storage()->data) + offset_ : nullptr; }

  // Views: the memory with a different shape, and the rows first .. first + count - 1 of the outermost index. Error: a tape
  // (autograd/tape.h) has recorded the tensor, so the gradient would silently end here. The ops reshape() and slice() pass the gradient on.
  Tensor reshaped(const Shape& shape) const;
  Tensor rows(int64_t first, int64_t count) const;
  Tensor detached() const;  // the value without a tape: it gets no gradient

  // Code that changes elements calls this, so a backward pass can detect changed values.
  void written(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (storage()) storage()->count_write(file, line);
  }
  bool same_as(const Tensor& other) const;  // equal memory, shape and slot on a tape
  Storage* storage() const { return storage_.get(); }

 private:
  friend class Tape;
  [[noreturn]] void fail_dtype(Dtype asked) const;
  void require_unrecorded(const char* view, const char* op) const;

  StorageOwner storage_;
  int64_t offset_ = 0;  // bytes: a tensor from rows() starts inside its storage
  Shape shape_;
  Dtype dtype_ = Dtype::f32;
  Device device_ = Device::cpu;
  uint32_t tape_ = 0;  // id of the tape that recorded this value, kept even after that tape has ended; 0 if no tape did
  int32_t slot_ = -1;  // index of the value on that tape
};

// A new tensor like t, except for the properties given.
inline Tensor like(const Tensor& t, CallSite caller = {}) { return Tensor(t.shape(), t.dtype(), t.device(), caller); }
inline Tensor like(const Tensor& t, const Shape& shape, CallSite caller = {}) { return Tensor(shape, t.dtype(), t.device(), caller); }
inline Tensor like(const Tensor& t, const Shape& shape, Dtype dtype, CallSite caller = {}) {
  return Tensor(shape, dtype, t.device(), caller);
}

[[noreturn]] void fail_not_floating(const Tensor& t);

// Calls f(T{}) with the element type T of a floating-point tensor: one template for all types. Errors: the tensor is empty or i64.
template <class F> decltype(auto) with_dtype(const Tensor& t, F f) {
  if (!t) fail_not_floating(t);
  switch (t.dtype()) {
    case Dtype::f32: return f(float{});
    case Dtype::f64: return f(double{});
    case Dtype::bf16: return f(bf16{});
    default: fail_not_floating(t);
  }
}

// Calls f(T{}, To{}) with the element types of two tensors. The types are equal, or they are bf16 and f32, for sums of bf16 values that are
// not rounded.
template <class F> void with_dtypes(const Tensor& source, const Tensor& target, F f) {
  if (source.dtype() == Dtype::bf16 && target.dtype() == Dtype::f32) return f(bf16{}, float{});
  with_dtype(source, [&]<class T>(T) { f(T{}, T{}); });
}

}  // namespace ricci
