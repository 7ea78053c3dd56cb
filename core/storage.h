// The parts of a Tensor: its shape, and reference-counted memory on a device. Most code needs only core/tensor.h. The memory is freed when
// the last tensor that uses it is destroyed.
#pragma once
#include <cstdint>
#include <initializer_list>

namespace ricci {

enum class Device : uint8_t { cpu, cuda, cuda_emulated };
const char* name_of(Device device);

// Extents, outermost first: Shape{2, 5, 3}. Rank 0 is a scalar of one element.
class Shape {
 public:
  static constexpr int kMaxRank = 6;
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) {
    for (int64_t extent : extents) push_back(extent);
  }
  void push_back(int64_t extent);  // errors: the extent is negative, the rank exceeds kMaxRank
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

// As a default argument: the source line of the call.
struct CallSite {
  const char* function = __builtin_FUNCTION();
  const char* file = __builtin_FILE();
  int line = __builtin_LINE();
};

// Memory on one device. Two threads can write to different rows of it, so the fields that change are atomic.
struct Storage {
  void* data;
  int64_t bytes;
  int64_t references;
  Device device;
  uint64_t version;         // writes so far; Tape::backward compares it to find values that changed after they were recorded
  const char* writer_file;  // source file of the last write
  int writer_line;
  int64_t counted;  // bytes counted in a dry run (core/memory/dry_run.h), else negative

  bool is_shared() const { return __atomic_load_n(&references, __ATOMIC_ACQUIRE) > 1; }
  void count_write(const char* file, int line) {
    __atomic_fetch_add(&version, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&writer_file, file, __ATOMIC_RELAXED);
    __atomic_store_n(&writer_line, line, __ATOMIC_RELAXED);
  }
};

void release_storage(Storage* storage);  // core/memory/memory.cpp

// A reference-counted pointer to a Storage, or null. std::shared_ptr would include <memory> in every kernel file.
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

}  // namespace ricci
