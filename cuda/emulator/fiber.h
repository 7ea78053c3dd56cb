// Fibers: stacks that one OS thread switches between. A switch takes 15 instructions on x86-64 and 24 on 64-bit ARM. The sanitizers are
// informed of every switch. For ThreadSanitizer, each fiber is a thread. A switch orders nothing; only barriers and fences do, so
// ThreadSanitizer sees races between CUDA threads.
#pragma once
#include <cstddef>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#define RICCI_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define RICCI_ASAN 0
#endif
#ifdef __SANITIZE_THREAD__
#define RICCI_TSAN 1
#include <sanitizer/tsan_interface.h>
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);  // despite its name, ignores reads and writes
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
#else
#define RICCI_TSAN 0
#endif

extern "C" void ricci_emulator_switch(void** save_stack_pointer, void* stack_pointer);

namespace emu {

struct Stack {
  char* bottom = nullptr;
  size_t bytes = 0;
  size_t offset = 0;  // distance of the first frame from the top
};

// Hides the emulator's own bookkeeping from ThreadSanitizer.
class Quiet {
 public:
#if RICCI_TSAN
  Quiet() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~Quiet() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
#else
  Quiet() {}
  ~Quiet() {}
#endif
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

// For ThreadSanitizer: everything before a release comes before everything after an acquire of that tag.
inline void order_release([[maybe_unused]] char* tag) {
#if RICCI_TSAN
  __tsan_release(tag);
#endif
}
inline void order_acquire([[maybe_unused]] char* tag) {
#if RICCI_TSAN
  __tsan_acquire(tag);
#endif
}

class Fiber {
  void* stack_pointer_ = nullptr;  // the first member: it shares a cache line with those members of the CUDA thread that a switch reads

 public:
  Stack stack;

  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next switch to this fiber calls entry() on that stack. entry begins with `begin` and ends with `leave`.
  void prepare(const Stack& stack, void (*entry)());
  // Makes this object represent the stack that the calling OS thread runs on.
  void adopt();

  // Returns when a fiber switches to `current`.
  static void switch_to(Fiber& current, Fiber& next);
  static void begin(Fiber& scheduler);             // the scheduler is the fiber that switched to the first fiber after adopt()
  static void leave(Fiber& current, Fiber& next);  // the last switch of `current`; does not return

 private:
  static void change(Fiber& current, Fiber& next);
  [[maybe_unused]] void* fake_stack_ = nullptr;  // for AddressSanitizer
  [[maybe_unused]] void* thread_ = nullptr;      // for ThreadSanitizer
  [[maybe_unused]] bool own_thread_ = false;
};

// The stacks of one OS thread, kept from launch to launch. Below each stack is a page without access, so an overflow causes a fault.
class Stacks {
 public:
  Stacks() = default;
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  Stack take() {
    if (free_.empty()) map();
    const Stack stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void give_back(const Stack& stack) { free_.push_back(stack); }

 private:
  void map();
  std::vector<Stack> free_;
  std::vector<char*> maps_;
};

#if !RICCI_ASAN && !RICCI_TSAN
inline void Fiber::switch_to(Fiber& current, Fiber& next) { ricci_emulator_switch(&current.stack_pointer_, next.stack_pointer_); }
#endif

}  // namespace emu
