// The products of warpgroups (wgmma in cuda/ptx.h) on the emulator. A GPU computes them while the kernel continues. To find kernels that do
// not wait, the accumulators hold NaN from the start of a product, and each lane computes its own elements as late as possible: when it
// waits. This reveals results that are read too early, and shared memory or registers of the left operand that are changed too early.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "cuda/emulator/emulator.h"

namespace emu {

// An array of registers that a kernel passes to an instruction.
struct Registers {
  const void* first = nullptr;
  size_t bytes = 0;
  bool hold(const void* p) const {
    const auto address = reinterpret_cast<uintptr_t>(p), begin = reinterpret_cast<uintptr_t>(first);
    return address >= begin && address < begin + bytes;
  }
};

// A right operand [16][columns] of bf16 in shared memory, read from its descriptor. For a left operand, the columns are its 64 rows.
struct Operand {
  unsigned start, leading, stride, columns;
  bool transposed;
  unsigned offset_of(unsigned k, unsigned column) const;  // bytes from the start of shared memory to the element
};

struct Product {
  const char* name;
  float* d;             // [columns / 8][4]
  const uint32_t* a;    // null if the left operand is in shared memory
  Operand left, right;  // `left` has no columns if the operand is in registers
  bool accumulate;
  Loc loc;
  unsigned group = 0;  // number of groups closed before this product
  uint32_t a_at_issue[4] = {};
  float rows[2][16] = {};  // rows of the left operand for this lane's elements
};

// The unfinished products of one CUDA thread.
class AsyncProducts {
 public:
  void fence(const Registers& first, const Registers& second);
  void begin(const Product& product);
  void commit() { ++groups_; }
  void wait(unsigned groups_left, const Registers& d, Loc loc);
  const Loc* under_way() const { return products_.empty() ? nullptr : &products_.front().loc; }
  void forget();

 private:
  struct Sum {
    float* d;
    std::vector<float> values;
    bool untouched() const;
  };
  Sum* find(const float* d);
  bool is_fenced(const void* p) const { return fenced_[0].hold(p) || fenced_[1].hold(p); }
  void run(const Product& product);
  void deliver(const Registers& d, Loc loc);

  std::vector<Product> products_;  // in starting order
  std::vector<Sum> sums_;          // their accumulators
  std::array<Registers, 2> fenced_{};
  bool has_fenced_ = false;  // true after a wgmma_fence since the last wait
  unsigned groups_ = 0;      // number of closed groups
};

// The four warps of a warpgroup execute the same instructions in the same order, but not at the same time.
class Warpgroups {
 public:
  struct Step {
    const char* name;
    Loc loc;
    uint64_t left, right;  // descriptors
  };
  void begin_block(unsigned warps);
  // Adds the next step of a warp. Returns the mistake in this step, or an empty text.
  std::string add(unsigned warp, const Step& step);
  std::string unfinished() const;  // the mistake found at the end of the block

 private:
  static constexpr unsigned kWarps = 4;
  struct Log {
    std::vector<Step> steps;  // not yet executed by all four warps
    unsigned executed[kWarps] = {};
  };
  unsigned warps_ = 0;
  std::array<Log, 8> logs_;
};

class SharedMemory;

// Shared memory as tensor cores see it, through the asynchronous proxy. The proxy shows only writes made before a fence_proxy_async that is
// followed by a barrier. The emulator does not know which thread wrote, so it expects the fence from all threads of the block.
class AsyncProxy {
 public:
  void begin_block();
  void fence(unsigned thread, unsigned live, const SharedMemory& shared);
  void written(unsigned thread);  // called after an asynchronous copy of this thread has arrived
  void barrier(unsigned live);
  bool sees(const SharedMemory& shared, unsigned offset, unsigned bytes) const;

 private:
  std::vector<bool> fenced_by_;
  unsigned fences_ = 0;
  std::vector<unsigned char> fenced_, seen_;  // shared memory at the last fence; shared memory as the proxy shows it
};

}  // namespace emu
