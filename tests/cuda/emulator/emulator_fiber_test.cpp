// Fibers by themselves: what a switch keeps, and which kind of switch this program was built with.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "cuda/emulator/fiber.h"

namespace {

using emu::Fiber;

Fiber main_fiber, fibers[3];
int turns[3];
double results[3];
bool aligned[3];
char ended[3];  // to ThreadSanitizer, switches order nothing

// Holds more live values than there are registers across each switch to the next fiber.
template <int which> void entry() {
  Fiber::begin(main_fiber);
  alignas(16) volatile char on_stack[16] = {};
  aligned[which] = reinterpret_cast<uintptr_t>(on_stack) % 16 == 0;
  double values[24];
  for (int i = 0; i < 24; ++i) values[i] = which * 100 + i;
  for (; turns[which] < 1000; ++turns[which]) {
    for (double& value : values) value += 1;
    Fiber::switch_to(fibers[which], which == 2 ? main_fiber : fibers[which + 1]);
  }
  for (double value : values) results[which] += value;
  emu::order_release(&ended[which]);
  Fiber::leave(fibers[which], main_fiber);
}

const char* kind() {
#ifdef RICCI_EMULATOR_UCONTEXT
  return "ucontext";
#else
  return "assembly";
#endif
}

}  // namespace

TEST_CASE("three fibers in turn keep their values, on stacks that are aligned") {
  MESSAGE("switches by ", std::string(kind()));
  emu::Stacks stacks;
  main_fiber.adopt();
  void (*const entries[])() = {&entry<0>, &entry<1>, &entry<2>};
  for (int i = 0; i < 3; ++i) turns[i] = 0, results[i] = 0, fibers[i].prepare(stacks.take(), entries[i]);
  for (int round = 0; round < 1000; ++round) Fiber::switch_to(main_fiber, fibers[0]);
  for (Fiber& fiber : fibers) Fiber::switch_to(main_fiber, fiber);  // to the end of each
  for (int i = 0; i < 3; ++i) {
    emu::order_acquire(&ended[i]);
    CHECK(turns[i] == 1000);
    CHECK(results[i] == 24 * (i * 100 + 1000) + 23 * 24 / 2);
    CHECK(aligned[i]);
  }
}

TEST_CASE("stacks are reused, and below each lies a page without access") {
  emu::Stacks stacks;
  const emu::Stack first = stacks.take(), second = stacks.take();
  CHECK(first.bottom != second.bottom);
  CHECK(first.bytes >= 64 * 1024);
  stacks.give_back(first);
  CHECK(stacks.take().bottom == first.bottom);
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  CHECK(write(pipe_ends[1], second.bottom, 1) == 1);
  CHECK(write(pipe_ends[1], second.bottom - 1, 1) == -1);  // the kernel may not read it either
  close(pipe_ends[0]), close(pipe_ends[1]);
}
