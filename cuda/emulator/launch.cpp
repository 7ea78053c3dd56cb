// Launches: options, checks, and the distribution of the blocks over OS threads. Blocks can take different times, so a worker starts its
// next block as soon as it has finished one.
#include "cuda/emulator/launch.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

#include "core/error.h"
#include "cuda/emulator/block.h"
#include "cuda/emulator/memory/device_memory.h"
#include "cuda/emulator/memory/isolation.h"
#include "cuda/emulator/memory/sparse.h"
#include "cuda/emulator/report.h"

namespace emu {

// ---- A block before its threads run

constinit thread_local Block* current_block = nullptr;

Block::Block() : threads_(new Thread[kMaxThreads]), tags_(std::make_unique<OrderTags>()) {
  for (unsigned w = 0; w < warps_.size(); ++w) warps_[w].index = w;
}

void Block::begin_launch(const Launch& launch, void (*body)(const void*), const void* kernel) {
  launch_ = &launch;
  body_ = body;
  kernel_ = kernel;
  error = nullptr;
  looked_up_ = {};
  options_ = options();
  const dim3 size = launch.block;
  n_threads_ = size.x * size.y * size.z;
  n_warps_ = (n_threads_ + kLanes - 1) / kLanes;
  if (size.x != indexed_for_.x || size.y != indexed_for_.y || size.z != indexed_for_.z)
    for (unsigned i = 0; i < n_threads_; ++i) threads_[i].index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
  indexed_for_ = size;
  blockDim = size;
  gridDim = launch.grid;
  scheduler_.adopt();
  order_release(&start_tag_);
  current_block = this;
}

void Block::end_launch() {
  current_block = nullptr;
  order_acquire(&end_tag_);
}

void Block::start(uint64_t seed) {
  random_ = (seed + 1) * 0x9e3779b97f4a7c15u | 1;
  for (unsigned w = 0; w < n_warps_; ++w) {
    const unsigned lanes = n_threads_ - w * kLanes;
    warps_[w].live = warps_[w].ready = lanes >= kLanes ? ~0u : (1u << lanes) - 1;
    warps_[w].waiting = warps_[w].at_barrier = warps_[w].polling = 0;
  }
  live_ = n_threads_;
  arrived_ = 0;
  turn_ = (turn_ + 1) % kFibersPerThread;
  if (RICCI_TSAN) {
    tags_.reset();  // the barriers of one block order nothing in the next block
    tags_ = std::make_unique<OrderTags>();
    for (unsigned i = 0; i < n_threads_; ++i) threads_[i].barriers = threads_[i].warp_barriers = 0;
  }
  shared_.begin_block(launch_->dynamic_shared_bytes);
  warpgroups_.begin_block(n_warps_);
  proxy_.begin_block();
}

// ---- The launch of all blocks

namespace {

uint64_t number(const char* name, uint64_t otherwise, uint64_t least, uint64_t most) {
  const char* text = std::getenv(name);
  if (!text) return otherwise;
  uint64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, code] = std::from_chars(text, end, value);
  if (code != std::errc() || stop != end || value < least || value > most)
    ricci::fail("{}: expected a number from {} to {}, got '{}'", {name, least, most, text});
  return value;
}

Options::Order order_from_environment() {
  const char* text = std::getenv("RICCI_EMULATOR_ORDER");
  if (!text || !std::strcmp(text, "forward")) return Options::Order::forward;
  if (!std::strcmp(text, "reverse")) return Options::Order::reverse;
  if (!std::strcmp(text, "random")) return Options::Order::random;
  ricci::fail("RICCI_EMULATOR_ORDER: expected forward, reverse or random, got '{}'", {text});
}

// The variables RICCI_EMULATOR_*. If a variable is invalid, all options keep their defaults, and `fault` is the error message.
struct Environment {
  Options options;
  std::string fault;
};

Options options_from_environment() {
  Options options;
  options.order = order_from_environment();
  options.seed = number("RICCI_EMULATOR_SEED", options.seed, 0, INT64_MAX);
  options.workers = static_cast<int>(number("RICCI_EMULATOR_WORKERS", 1, 1, 256));
  options.lazy = number("RICCI_EMULATOR_LAZY", 0, 0, 1) != 0;
  options.isolate = number("RICCI_EMULATOR_ISOLATE", 0, 0, 1) != 0;
  options.ends = number("RICCI_EMULATOR_ENDS", 0, 0, 1) != 0;
  return options;
}

Environment& environment() {
  static Environment read = [] {
    try {
      return Environment{options_from_environment(), ""};
    } catch (const ricci::Error& error) {
      return Environment{{}, error.what()};
    }
  }();
  return read;
}

// The order of the blocks that run: all, or only the first and the last. `step` and the number of blocks have no common factor, so each
// block runs once.
struct BlockOrder {
  uint64_t blocks, count, start = 0, step = 1;

  BlockOrder(uint64_t blocks_, uint64_t count_, const Options& options) : blocks(blocks_), count(count_) {
    if (options.order == Options::Order::reverse) {
      start = count - 1;
      step = count - 1;
    }
    if (options.order != Options::Order::random) return;
    const uint64_t mixed = (options.seed + 1) * 0x9e3779b97f4a7c15u;
    start = (mixed >> 32) % count;
    step = mixed % 0x7fffffffu % count;
    while (std::gcd(step, count) != 1) ++step;
  }
  uint64_t operator[](uint64_t i) const {
    const auto index = static_cast<uint64_t>((static_cast<unsigned __int128>(i) * step + start) % count);
    return index < count / 2 || count == blocks ? index : blocks - count + index;
  }
};

uint64_t blocks_to_run(const Launch& launch, uint64_t blocks) {
  const uint64_t threads = blocks * launch.block.x * launch.block.y * launch.block.z;
  return options().ends && threads >= kWholeThreads ? std::min<uint64_t>(blocks, 2) : blocks;
}

struct Work {
  const Launch& launch;
  void (*body)(const void*);
  const void* kernel;
  BlockOrder order;
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::string race = {};

  void end_isolated_block(uint64_t b);
};

uint3 block_index(uint64_t b, dim3 grid) {
  return {static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y), static_cast<unsigned>(b / grid.x / grid.y)};
}

void run_blocks(Block& block, Work& work) {
  Quiet quiet;
  block.begin_launch(work.launch, work.body, work.kernel);
  for (uint64_t i; !work.failed && (i = work.next++) < work.order.count;) {
    const uint64_t b = work.order[i];
    if (isolation) isolation->begin_block(b);
    if (!block.run(block_index(b, work.launch.grid), options().seed ^ b << 20) || block.found_writer()) work.failed = true;
    if (isolation && !work.failed) work.end_isolated_block(b);
  }
  block.end_launch();
}

// Block i of the launching OS thread, with its fibers and stacks. Making a block takes longer than running a small kernel.
Block& kept_block(size_t i) {
  static thread_local std::vector<std::unique_ptr<Block>> blocks;
  while (blocks.size() <= i) blocks.push_back(std::make_unique<Block>());
  return *blocks[i];
}

void Work::end_isolated_block(uint64_t b) {
  const Isolation::Race found = isolation->end_block();
  if (!found.bytes) return;
  const dim3 grid = launch.grid;
  const uint64_t first = std::min(b, found.other_block), second = std::max(b, found.other_block);
  race = ricci::format_message("{}: race between blocks {} and {}: both write byte {} of a device allocation of {} bytes (launched at {})",
      {launch.name, position(block_index(first, grid), grid), position(block_index(second, grid), grid), found.byte, found.bytes,
          describe(launch.loc)});
  failed = true;
}

void run_isolated(Work& work) {
  Isolation of_launch;
  isolation = &of_launch;
  isolated = true;
  run_blocks(kept_block(0), work);
  isolation = nullptr;
  isolated = false;
  of_launch.end_launch();
  if (!work.race.empty()) throw ricci::Error(work.race);
}

void run_on_workers(Work& work, size_t workers) {
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < workers; ++i) threads.emplace_back([&work, &block = kept_block(i)] { run_blocks(block, work); });
  run_blocks(kept_block(0), work);
}

// Runs all blocks again to find the thread that writes the byte. Returns an empty text if no thread wrote it this time.
std::string find_writer(const Work& first, const unsigned char* byte) {
  Block& block = kept_block(0);
  Work again{first.launch, first.body, first.kernel, first.order};
  block.watch(byte);
  show_device_memory();
  run_blocks(block, again);
  hide_device_memory();
  block.error = nullptr;
  return block.stop_watching();
}

void check_device_memory(const Work& work) {
  const DeviceDamage damage = repair_device_memory();
  if (!damage.byte) return;
  const std::string who = find_writer(work, damage.byte);
  while (repair_device_memory().byte) {
  }
  ricci::fail("{}: {}device memory was written out of bounds, at byte {} of an allocation of {} bytes (launched at {})",
      {work.launch.name, who.empty() ? who : who + ": ", damage.offset, damage.bytes, describe(work.launch.loc)});
}

}  // namespace

Options& options() { return environment().options; }

void check_options() {
  if (!environment().fault.empty()) throw ricci::Error(environment().fault);
  if (options().ends && options().isolate) ricci::fail("emulator: the options 'ends' and 'isolate' cannot be combined");
  if (options().ends && (RICCI_ASAN || RICCI_TSAN)) ricci::fail("emulator: the option 'ends' is not supported in a build with a sanitizer");
}

void check_launch(const Launch& l) {
  check_options();
  const uint64_t threads = uint64_t{l.block.x} * l.block.y * l.block.z;
  const auto fail = [&](const char* what, dim3 got, const char* expected) {
    ricci::fail("{}: {} is {} x {} x {}, expected {} (launched at {})", {l.name, what, got.x, got.y, got.z, expected, describe(l.loc)});
  };
  // The extents are checked first: the product of three large extents could overflow.
  if (l.block.x > kMaxThreads || l.block.y > kMaxThreads || l.block.z > 64 || threads == 0 || threads > kMaxThreads)
    fail("block size", l.block, "1 to 1024 threads, z at most 64");
  if (l.grid.x == 0 || l.grid.y == 0 || l.grid.z == 0 || l.grid.x > 0x7fffffffu || l.grid.y > 65535 || l.grid.z > 65535)
    fail("grid size", l.grid, "1 to 2147483647 x 65535 x 65535 blocks");
  if (l.dynamic_shared_bytes > SharedMemory::kMaxBytes)
    ricci::fail("{}: asks for {} bytes of dynamic shared memory, expected at most {} (launched at {})",
        {l.name, l.dynamic_shared_bytes, SharedMemory::kMaxBytes, describe(l.loc)});
  if (current_block)
    ricci::fail("{}: launched from inside kernel {} (launched at {})", {l.name, current_block->launch().name, describe(l.loc)});
}

void run(const Launch& launch, void (*body)(const void*), const void* kernel) {
  check_launch(launch);
  const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const size_t workers = std::min<uint64_t>(static_cast<uint64_t>(std::max(1, options().workers)), blocks);
  Work work{launch, body, kernel, BlockOrder(blocks, blocks_to_run(launch, blocks), options())};
  show_device_memory();
  try {
    options().isolate&& blocks > 1 ? run_isolated(work) : run_on_workers(work, workers);
  } catch (...) {
    hide_device_memory();
    throw;
  }
  hide_device_memory();
  for (size_t i = 0; work.failed && i < workers; ++i)
    if (kept_block(i).error) std::rethrow_exception(std::exchange(kept_block(i).error, nullptr));
  check_device_memory(work);
}

}  // namespace emu
