// The shared memory of one block: the dynamic part, then the static variables in the order of their first use. It is filled with 0xff (NaN)
// before each block; a red zone follows each object.
#pragma once
#include <cstddef>
#include <vector>

namespace emu {

class SharedMemory {
 public:
  // The limits on Hopper: 227 KiB for a block, at most 48 KiB for its static variables.
  static constexpr size_t kMaxBytes = 227 * 1024, kMaxStaticBytes = 48 * 1024;

  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void begin_block(size_t dynamic_bytes);
  void* dynamic() const { return memory_; }
  bool contains(const void* p, size_t bytes) const;  // true if all bytes are in one variable
  void copy_to(std::vector<unsigned char>& bytes) const;
  // The variable with this key, made on first use. Null if the variable does not fit.
  void* variable(const void* key, const char* name, size_t bytes);
  // The first write into a red zone; the name is null if none was found. AddressSanitizer checks the red zones itself.
  struct Damage {
    const char* variable = nullptr;
    size_t bytes = 0, position = 0, offset = 0;  // offset: from the start of all shared memory
  };
  Damage damage() const;
  const unsigned char* repaired(const Damage& damage);  // restores that byte and returns its address

 private:
  struct Variable {
    const void* key;  // null for the dynamic part
    const char* name;
    unsigned char* data;
    size_t bytes;
  };
  void reserve(size_t bytes);
  void open(unsigned char* data, size_t bytes);

  unsigned char* memory_ = nullptr;
  size_t reserved_ = 0, top_ = 0, static_bytes_ = 0, dynamic_bytes_ = 0;
  std::vector<Variable> variables_;
};

}  // namespace emu
