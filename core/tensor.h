// A Tensor is a small value: shared storage, a shape, and (while a Tape records) the slot it has on that tape.
// Elements are always contiguous in row-major order; a view of the same storage starts at an offset.
// This header includes nothing heavy on purpose: every file sees it.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "core/bf16.h"

namespace ricci {

enum class Dtype : uint8_t { f32, f64, bf16, i64 };
enum class Device : uint8_t { cpu, cuda, cuda_emulated };

const char* name_of(Dtype dtype);
const char* name_of(Device device);
inline constexpr const char* kFloatingDtypes = "f32, f64 or bf16";
int64_t size_of(Dtype dtype);  // bytes per element
// The dtype in which sums of such numbers are held, and what must not lose small changes: f64 for f64, else f32.
inline Dtype sums_of(Dtype dtype) { return dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32; }

// The dtype that stores a C++ type.
template <class T> inline constexpr Dtype dtype_of = Dtype::f32;
template <> inline constexpr Dtype dtype_of<double> = Dtype::f64;
template <> inline constexpr Dtype dtype_of<bf16> = Dtype::bf16;
template <> inline constexpr Dtype dtype_of<int64_t> = Dtype::i64;

// Extents, outermost first. Rank 0 is a scalar of one element.
class Shape {
 public:
  static constexpr int kMaxRank = 6;
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) {
    for (int64_t extent : extents) push_back(extent);
  }
  void push_back(int64_t extent);  // error: negative extent, more than kMaxRank
  int rank() const { return rank_; }
  int64_t operator[](int i) const { return extent_[i < 0 ? rank_ + i : i]; }  // -1 is the innermost
  void set(int i, int64_t extent) { extent_[i < 0 ? rank_ + i : i] = extent; }
  int64_t size() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= extent_[i];
    return n;
  }
  bool operator==(const Shape&) const = default;  // extents beyond the rank are 0

 private:
  int rank_ = 0;
  int64_t extent_[kMaxRank] = {};
};

// The place in the source that a function with a default argument of this type was called from.
struct CallSite {
  const char* function = __builtin_FUNCTION();
  const char* file = __builtin_FILE();
  int line = __builtin_LINE();
};

// Reference-counted memory on one device; released when the last tensor lets go.
struct Storage {
  void* data;
  int64_t bytes;
  int64_t references;
  Device device;
  uint64_t version;         // how many writes there were since it was made; the tape checks it
  const char* writer_file;  // where the last of them was made
  int writer_line;
  int64_t counted;  // in a dry run: see dry_run.h; else -1
};

void release_storage(Storage* storage);  // core/memory/memory.h

// One of the owners of a Storage, or of none.
class StorageOwner {
 public:
  StorageOwner() = default;
  explicit StorageOwner(Storage* storage) : storage_(storage) {}
  StorageOwner(const StorageOwner& other) : storage_(other.storage_) {
    if (storage_) __atomic_fetch_add(&storage_->references, 1, __ATOMIC_RELAXED);
  }
  StorageOwner(StorageOwner&& other) noexcept : storage_(other.storage_) { other.storage_ = nullptr; }
  StorageOwner& operator=(StorageOwner other) noexcept {
    Storage* const before = storage_;
    storage_ = other.storage_;
    other.storage_ = before;
    return *this;
  }
  ~StorageOwner() {
    if (storage_ && __atomic_sub_fetch(&storage_->references, 1, __ATOMIC_ACQ_REL) == 0) release_storage(storage_);
  }
  Storage* get() const { return storage_; }

 private:
  Storage* storage_ = nullptr;
};

class Tensor {
 public:
  Tensor() = default;
  // Uninitialised memory. Errors: no such device; out of memory (core/memory/memory.h), which names the caller.
  explicit Tensor(Shape shape, Dtype dtype = Dtype::f32, Device device = Device::cpu, CallSite asker = {});

  explicit operator bool() const { return storage() != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return shape_.size(); }
  Dtype dtype() const { return dtype_; }
  Device device() const { return device_; }
  int64_t bytes() const { return size() * size_of(dtype_); }

  // The first element, on the tensor's device. Error: T is not the tensor's dtype.
  template <class T> T* data() const {
    if (dtype_of<T> != dtype_) wrong_dtype(dtype_of<T>);
    return static_cast<T*>(raw());
  }
  void* raw() const { return storage() ? static_cast<char*>(storage()->data) + offset_ : nullptr; }

  // Views for reading and writing elements: the same elements under another shape, or the rows first .. first+count of the
  // outermost index. A view is on no tape, so a tensor that a tape recorded has none: a gradient would silently end there.
  // To differentiate through a view, use the ops reshape() and slice(). To give the gradient up, call detached() first. Inside
  // an op, view inputs as x.detached().reshaped(...); what keep() hands to a backward is detached already.
  // Errors: a tensor that was recorded on a tape; another number of elements; rows that do not exist.
  Tensor reshaped(const Shape& shape) const;
  Tensor rows(int64_t first, int64_t count) const;

  bool unique() const { return storage() && __atomic_load_n(&storage()->references, __ATOMIC_ACQUIRE) == 1; }
  uint64_t version() const { return storage() ? storage()->version : 0; }
  const Storage* storage() const { return storage_.get(); }
  // True where both are one value: the same elements under the same shape, at the same place of the same tape.
  bool same_as(const Tensor& other) const {
    return raw() == other.raw() && shape_ == other.shape_ && dtype_ == other.dtype_ && tape_ == other.tape_ && slot_ == other.slot_;
  }
  // Counts a write. Code that changes the elements of a tensor that a tape may have kept calls it: optimizers, fill, copy, add_to,
  // multiply_by. Two threads may write to different rows of one storage, so the fields are set atomically.
  void written(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    Storage* const s = storage_.get();
    if (!s) return;
    __atomic_fetch_add(&s->version, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&s->writer_file, file, __ATOMIC_RELAXED);
    __atomic_store_n(&s->writer_line, line, __ATOMIC_RELAXED);
  }
  Tensor detached() const {  // the same value, on no tape
    Tensor t = *this;
    t.tape_ = 0;
    t.slot_ = -1;
    return t;
  }

 private:
  friend class Tape;
  [[noreturn]] void wrong_dtype(Dtype asked) const;
  void require_unrecorded(const char* view, const char* op) const;

  StorageOwner storage_;
  int64_t offset_ = 0;  // bytes
  Shape shape_;
  Dtype dtype_ = Dtype::f32;
  Device device_ = Device::cpu;
  uint32_t tape_ = 0;  // the number of the tape that recorded this value, also after the tape's end; 0 if none did
  int32_t slot_ = -1;  // and where on it
};

inline Tensor like(const Tensor& t, CallSite asker = {}) { return Tensor(t.shape(), t.dtype(), t.device(), asker); }
inline Tensor like(const Tensor& t, const Shape& shape, CallSite asker = {}) { return Tensor(shape, t.dtype(), t.device(), asker); }
inline Tensor like(const Tensor& t, const Shape& shape, Dtype dtype, CallSite asker = {}) {
  return Tensor(shape, dtype, t.device(), asker);
}

[[noreturn]] void not_floating(const Tensor& t);

// Calls f(T{}) with the element type of a floating-point tensor. Errors: an empty tensor, an i64 one.
template <class F> decltype(auto) with_dtype(const Tensor& t, F f) {
  if (!t) not_floating(t);
  switch (t.dtype()) {
    case Dtype::f32: return f(float{});
    case Dtype::f64: return f(double{});
    case Dtype::bf16: return f(bf16{});
    default: not_floating(t);
  }
}

// Calls f(T{}, To{}) with the element types of two tensors. `target` has the dtype of `source`, or f32 where that is bf16: sums over
// bf16 that are not rounded.
template <class F> void with_dtypes(const Tensor& source, const Tensor& target, F f) {
  if (source.dtype() == Dtype::bf16 && target.dtype() == Dtype::f32) return f(bf16{}, float{});
  with_dtype(source, [&]<class T>(T) { f(T{}, T{}); });
}

// The type sums are held in: f32 for bf16 storage.
template <class T> struct AccumulatorOf { using Type = T; };
template <> struct AccumulatorOf<bf16> { using Type = float; };
template <class T> using Accumulator = typename AccumulatorOf<T>::Type;

}  // namespace ricci
