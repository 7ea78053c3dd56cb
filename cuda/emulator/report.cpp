// Makes the one-line message about a block that failed: the kernel, the block, and the source line of each waiting thread. The path to such
// a message, if a thread returns while others wait at a barrier:
//   thread.cpp                    run_thread          the thread has left the kernel's function; calls thread_returned
//   instructions/collectives.cpp  thread_returned     calls check_nobody_waits
//   report.cpp                    check_nobody_waits  arrived_ > 0: throws an Error with state(), the list of all threads
// A barrier gets its line through its declaration, `inline void __syncthreads(Loc loc = {})` (instructions/collectives.h). Loc (emulator.h)
// is by default __builtin_FILE() and __builtin_LINE(), and the compiler evaluates a default argument at the call, so this is the kernel's
// line. Block::barrier stores it, and thread_state shows it.
#include "cuda/emulator/report.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "cuda/emulator/block.h"

namespace emu {
namespace {

std::string hex(unsigned mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

}  // namespace

std::string ranges(const std::vector<unsigned>& numbers) {
  std::string text;
  unsigned shown = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t first = i;
    while (i + 1 < numbers.size() && numbers[i + 1] == numbers[i] + 1) ++i;
    if (++shown > 6) return text + ", ...";
    text += (shown > 1 ? ", " : "") + std::to_string(numbers[first]);
    if (i > first) text += "-" + std::to_string(numbers[i]);
  }
  return text;
}

bool same_place(Loc a, Loc b) { return a.line == b.line && (a.file == b.file || !std::strcmp(a.file, b.file)); }

std::string describe(Loc loc) { return ricci::format_message("{}:{}", {loc.file, loc.line}); }

std::string position(uint3 index, dim3 size) {
  if (size.y == 1 && size.z == 1) return std::to_string(index.x);
  return ricci::format_message("({}, {}, {})", {index.x, index.y, index.z});
}

std::string Block::prefix() const { return std::string(launch_->name) + ": "; }
std::string Block::launched_at() const { return " (launched at " + describe(launch_->loc) + ")"; }
std::string Block::block_name() const { return "block " + position(blockIdx, launch_->grid); }
std::string Block::running_thread() const { return "thread " + position(threadIdx, launch_->block) + " of " + block_name(); }

void Block::fail(const std::string& what) const { throw ricci::Error(prefix() + block_name() + ": " + what + launched_at()); }

void Block::fail_thread(const std::string& what) const { throw ricci::Error(prefix() + running_thread() + ": " + what + launched_at()); }

std::string Block::thread_state(unsigned thread) const {
  const Warp& warp = warps_[thread / kLanes];
  const unsigned lane = thread % kLanes;
  const auto is_in = [&](unsigned lanes) { return (lanes >> lane & 1) != 0; };
  if (!is_in(warp.live)) return "returned";
  if (is_in(warp.at_barrier)) return "at __syncthreads " + describe(threads_[thread].barrier);
  if (is_in(warp.polling)) return "in a loop with __nanosleep or atomicCAS";
  if (!is_in(warp.waiting)) return "elsewhere";
  const Arrival& arrival = warp.arrivals[lane];
  return "at " + std::string(arrival.name) + " " + describe(arrival.loc) + " with mask " + hex(arrival.mask);
}

void Block::fail_mask(const char* name, unsigned mask, Loc loc) const {
  const std::string where = std::string(name) + " at " + describe(loc) + " with mask " + hex(mask);
  if (!(mask >> lane_ & 1)) fail_thread(where + ": the calling lane " + std::to_string(lane_) + " is not in the mask");
  fail_thread(where + ": lanes " + hex(mask & ~warp_->live) + " returned or never existed: " + state());
}

void Block::check_nobody_waits() const {
  if (arrived_) fail_thread("returned while others wait for it at a barrier: " + state());
  for (unsigned rest = warp_->waiting; rest; rest &= rest - 1)
    if (warp_->arrivals[std::countr_zero(rest)].mask >> lane_ & 1)
      fail_thread("returned while others wait for it at a warp collective: " + state());
}

void Block::check_nothing_under_way() {
  if (const Loc* loc = copies().under_way()) fail_thread("returned without waiting for the cp_async at " + describe(*loc));
  if (const Loc* loc = products().under_way()) fail_thread("returned without waiting for the wgmma_bf16 at " + describe(*loc));
}

void Block::finish(uint64_t seed) {
  if (const std::string fault = warpgroups_.unfinished(); !fault.empty()) fail(fault);
  const SharedMemory::Damage damage = shared_.damage();
  if (!damage.variable) return;
  const std::string who = find_writer(damage, seed);
  throw ricci::Error(ricci::format_message("{}{}: {} of {} bytes was written out of bounds, at byte {}{}",
      {prefix(), who.empty() ? block_name() : who, damage.variable, damage.bytes, damage.position, launched_at()}));
}

// ---- The thread that wrote out of bounds, found by a second run of the block. The result can differ: the first run has changed the data.

// Runs the block again and looks at the byte of shared memory whenever a thread stops.
std::string Block::find_writer(const SharedMemory::Damage& damage, uint64_t seed) {
  start(seed);
  watch(shared_.repaired(damage));
  try {
    schedule();
  } catch (const ricci::Error&) {  // the first run already found a mistake
  }
  unwind();
  error = nullptr;
  return stop_watching();
}

void Block::watch(const unsigned char* byte) {
  watched_ = byte;
  watched_value_ = *byte;
}

std::string Block::stop_watching() {
  watched_ = nullptr;
  return std::exchange(writer_, {});
}

void Block::look_at_watched_byte() {
  if (!watched_ || *watched_ == watched_value_) return;
  writer_ = running_thread();
  watched_ = nullptr;
}

}  // namespace emu

#if RICCI_ASAN
// AddressSanitizer calls this before it reports.
extern "C" void __asan_on_error() {
  const emu::Block* block = emu::current_block;
  if (!block) return;
  std::fprintf(stderr, "emulator: kernel %s, %s, launched at %s\n", block->launch().name, block->running_thread().c_str(),
      emu::describe(block->launch().loc).c_str());
}
#endif
