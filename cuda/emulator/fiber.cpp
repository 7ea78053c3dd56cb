#include "cuda/emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>

#include "core/error.h"

// A function that starts in one fiber and returns in another must not tell ThreadSanitizer of its entry and its exit.
#if RICCI_TSAN
#define ACROSS_FIBERS __attribute__((no_sanitize_thread, noinline))
#else
#define ACROSS_FIBERS
#endif

#ifndef RICCI_EMULATOR_UCONTEXT
// Saves the registers that a function must preserve on the old stack and restores them from the new one.
asm(R"(
  .text
  .globl ricci_emulator_switch
  .type ricci_emulator_switch, @function
ricci_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size ricci_emulator_switch, .-ricci_emulator_switch
)");
#endif

namespace emu {
namespace {

constexpr size_t kPage = 4096, kStacksPerMap = 32;
constexpr size_t kStackBytes = RICCI_ASAN || RICCI_TSAN ? 256 * 1024 : 64 * 1024;

}  // namespace

Fiber::~Fiber() {
#if RICCI_TSAN
  if (own_thread_) __tsan_destroy_fiber(thread_);
#endif
}

void Fiber::prepare(const Stack& new_stack, void (*entry)()) {
  stack = new_stack;
#if RICCI_TSAN
  if (!own_thread_) thread_ = __tsan_create_fiber(0), own_thread_ = true;
#endif
#ifdef RICCI_EMULATOR_UCONTEXT
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack.bottom;
  context_.uc_stack.ss_size = stack.bytes - stack.offset;
  context_.uc_link = nullptr;
  makecontext(&context_, entry, 0);
#else
  const uintptr_t end = reinterpret_cast<uintptr_t>(stack.bottom + stack.bytes - stack.offset);
  void** top = reinterpret_cast<void**>(end & ~uintptr_t{15});
  *--top = nullptr;  // where entry would return to: ends backtraces, and aligns the stack as a call does
  *--top = reinterpret_cast<void*>(entry);
  for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
  stack_pointer_ = top;
#endif
}

void Fiber::adopt() {
  stack = {};
#if RICCI_TSAN
  thread_ = __tsan_get_current_fiber();
#endif
}

ACROSS_FIBERS void Fiber::change(Fiber& from, Fiber& to) {
#if RICCI_TSAN
  __tsan_switch_to_fiber(to.thread_, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef RICCI_EMULATOR_UCONTEXT
  swapcontext(&from.context_, &to.context_);
#else
  ricci_emulator_switch(&from.stack_pointer_, to.stack_pointer_);
#endif
}

#if RICCI_ASAN || RICCI_TSAN || defined(RICCI_EMULATOR_UCONTEXT)
ACROSS_FIBERS void Fiber::switch_to(Fiber& from, Fiber& to) {
#if RICCI_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.stack.bottom, to.stack.bytes);
#endif
  change(from, to);
#if RICCI_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack_, nullptr, nullptr);
#endif
}
#endif

void Fiber::begin([[maybe_unused]] Fiber& scheduler) {
#if RICCI_ASAN
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (!scheduler.stack.bottom) scheduler.stack = {const_cast<char*>(static_cast<const char*>(bottom)), bytes, 0};
#endif
}

ACROSS_FIBERS void Fiber::leave(Fiber& from, Fiber& to) {
#if RICCI_ASAN
  __sanitizer_start_switch_fiber(nullptr, to.stack.bottom, to.stack.bytes);
#endif
  change(from, to);
}

Stacks::~Stacks() {
  for (char* map : maps_) munmap(map, kStacksPerMap * (kStackBytes + kPage));
}

void Stacks::map() {
  constexpr size_t kEach = kStackBytes + kPage;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* mapped = mmap(nullptr, kStacksPerMap * kEach, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) ricci::fail("emulator: no memory for {} stacks of {} bytes", {kStacksPerMap, kStackBytes});
  char* first = static_cast<char*>(mapped);
  maps_.push_back(first);
  for (size_t i = kStacksPerMap; i-- > 0;) {
    char* guard = first + i * kEach;
    mprotect(guard, kPage, PROT_NONE);
    // Stacks that all ended at the same place of a page would compete for the same few lines of the cache.
    free_.push_back({guard + kPage, kStackBytes, i % 16 * 256});
  }
}

}  // namespace emu
