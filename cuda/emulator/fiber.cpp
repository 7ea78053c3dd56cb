// Switches between fibers in assembly. ucontext also saves the signal mask, with a system call, and is about 20 times slower.
#include "cuda/emulator/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "core/error.h"

// Functions that start in one fiber and return in another must not report entry and exit to ThreadSanitizer.
#if RICCI_TSAN
#define ACROSS_FIBERS __attribute__((no_sanitize_thread, noinline))
#else
#define ACROSS_FIBERS
#endif

// Saves on the old stack the registers that a function must preserve, and restores them from the new one. For a new fiber, `first_frame`
// stores zeros as its registers and its first function as the return address.
#ifdef __aarch64__
asm(R"(
  .text
  .globl ricci_emulator_switch
  .type ricci_emulator_switch, %function
ricci_emulator_switch:
  stp x19, x20, [sp, #-160]!
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x2, sp
  str x2, [x0]
  mov sp, x1
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x19, x20, [sp], #160
  ret
  .size ricci_emulator_switch, .-ricci_emulator_switch
)");
constexpr size_t kSavedWords = 20, kReturnWord = 11;  // x30
#else
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
constexpr size_t kSavedWords = 8, kReturnWord = 6;  // the word above it, a null return address, also aligns the stack like a call
#endif

static void* first_frame(uintptr_t end_of_stack, void (*entry)()) {
  void** top = reinterpret_cast<void**>(end_of_stack & ~uintptr_t{15}) - kSavedWords;
  for (size_t i = 0; i < kSavedWords; ++i) top[i] = nullptr;
  top[kReturnWord] = reinterpret_cast<void*>(entry);
  return top;
}

namespace emu {
namespace {

constexpr size_t kStacksPerMap = 32;
constexpr size_t kStackBytes = RICCI_ASAN || RICCI_TSAN ? 256 * 1024 : 64 * 1024;
const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE)), kEach = kStackBytes + kPage;  // 4 KiB or, on some ARM systems, 64

}  // namespace

Fiber::~Fiber() {
#if RICCI_TSAN
  if (own_thread_) __tsan_destroy_fiber(thread_);
#endif
}

void Fiber::prepare(const Stack& new_stack, void (*entry)()) {
  stack = new_stack;
#if RICCI_TSAN
  if (!own_thread_) {
    thread_ = __tsan_create_fiber(0);
    own_thread_ = true;
  }
#endif
  stack_pointer_ = first_frame(reinterpret_cast<uintptr_t>(stack.bottom + stack.bytes - stack.offset), entry);
}

void Fiber::adopt() {
  stack = {};
#if RICCI_TSAN
  thread_ = __tsan_get_current_fiber();
#endif
}

ACROSS_FIBERS void Fiber::change(Fiber& current, Fiber& next) {
#if RICCI_TSAN
  __tsan_switch_to_fiber(next.thread_, __tsan_switch_to_fiber_no_sync);
#endif
  ricci_emulator_switch(&current.stack_pointer_, next.stack_pointer_);
}

#if RICCI_ASAN || RICCI_TSAN
ACROSS_FIBERS void Fiber::switch_to(Fiber& current, Fiber& next) {
#if RICCI_ASAN
  __sanitizer_start_switch_fiber(&current.fake_stack_, next.stack.bottom, next.stack.bytes);
#endif
  change(current, next);
#if RICCI_ASAN
  __sanitizer_finish_switch_fiber(current.fake_stack_, nullptr, nullptr);
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

ACROSS_FIBERS void Fiber::leave(Fiber& current, Fiber& next) {
#if RICCI_ASAN
  __sanitizer_start_switch_fiber(nullptr, next.stack.bottom, next.stack.bytes);
#endif
  change(current, next);
}

Stacks::~Stacks() {
  for (char* map : maps_) munmap(map, kStacksPerMap * kEach);
}

void Stacks::map() {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* mapped = mmap(nullptr, kStacksPerMap * kEach, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) ricci::fail("emulator: no memory for {} stacks of {} bytes", {kStacksPerMap, kStackBytes});
  char* first = static_cast<char*>(mapped);
  maps_.push_back(first);
  for (size_t i = kStacksPerMap; i-- > 0;) {
    char* guard = first + i * kEach;
    mprotect(guard, kPage, PROT_NONE);
    // Stacks that end at the same offset in a page would compete for the same few cache lines, so their offsets differ.
    free_.push_back({guard + kPage, kStackBytes, i % 16 * 256});
  }
}

}  // namespace emu
