// Checks the products of warpgroups and computes them in plain loops.
#include "cuda/emulator/instructions/wgmma.h"

#include <algorithm>
#include <cstring>

#include "core/dtype.h"
#include "core/error.h"
#include "cuda/emulator/block.h"
#include "cuda/emulator/report.h"
#include "cuda/ptx.h"

namespace emu {
namespace {

constexpr uint32_t kUnderWay = 0x7fb0b0b0;  // a NaN that no arithmetic produces
constexpr unsigned kDepth = 16, kRows = 64, kUnit = 16, kSwizzle = 128, kPattern = 1024;

[[noreturn]] void fail_product(const char* name, Loc loc, const std::string& what) {
  current_block->fail_thread(std::string(name) + " at " + describe(loc) + ": " + what);
}

const unsigned char* shared_bytes() { return static_cast<const unsigned char*>(current_block->shared().dynamic()); }

Operand decoded(const char* name, uint64_t bits, unsigned columns, bool transposed, Loc loc) {
  const auto field = [=](int bit) { return static_cast<unsigned>(bits >> bit & 0x3fff) << 4; };
  const Operand b{field(0), field(16), field(32), columns, transposed};
  if (bits >> 62 != 1) fail_product(name, loc, "the descriptor's swizzle is not 128 bytes");
  if (b.start % kPattern >= kSwizzle)
    fail_product(name, loc, ricci::format_message("the matrix begins {} bytes beyond a multiple of {}", {b.start % kPattern, kPattern}));
  return b;
}

// Each lane checks some of the 16-byte units of an operand.
void check_seen(const Product& product, const Operand& b, const char* otherwise) {
  const SharedMemory& shared = current_block->shared();
  for (unsigned i = current_block->lane(); i < b.columns * kDepth * 2 / kUnit; i += kLanes) {
    const unsigned offset = b.transposed ? b.offset_of(i % kDepth, i / kDepth * 8) : b.offset_of(i % 2 * 8, i / 2);
    if (!shared.contains(shared_bytes() + offset, kUnit))
      fail_product(product.name, product.loc, ricci::format_message("byte {} is not in the block's shared memory", {offset}));
    if (!current_block->proxy().sees(shared, offset, kUnit))
      fail_product(product.name, product.loc, ricci::format_message("byte {} of shared memory {}", {offset, otherwise}));
  }
}

void check_seen(const Product& product, const char* otherwise) {
  check_seen(product, product.left, otherwise);
  check_seen(product, product.right, otherwise);
}

// Loads an element in this function, visible to ThreadSanitizer.
float loaded(const Operand& operand, unsigned k, unsigned column) {
  ricci::bf16 element;
  std::memcpy(&element, shared_bytes() + operand.offset_of(k, column), sizeof element);
  return static_cast<float>(element);
}

struct StepLane {
  Warpgroups::Step step;
  Product* product;  // null for a different instruction
};

void resolve_step(void* const* payloads, unsigned) {
  const auto payload_of = [&](unsigned lane) -> const StepLane& { return *static_cast<const StepLane*>(payloads[lane]); };
  const Warpgroups::Step& step = payload_of(0).step;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (payload_of(lane).step.left != step.left || payload_of(lane).step.right != step.right)
      current_block->fail(std::string(step.name) + " at " + describe(step.loc) + ": the lanes of the warp have different descriptors");
    if (!payload_of(lane).product || !payload_of(lane).product->a) continue;
    for (unsigned from = 0; from < 4; ++from)  // the four lanes that share the rows lane / 4 and lane / 4 + 8
      for (unsigned r = 0; r < 4; ++r)
        for (unsigned half = 0; half < 2; ++half) {
          const uint32_t bits = payload_of(lane / 4 * 4 + from).product->a[r] >> 16 * half;
          payload_of(lane).product->rows[r % 2][r / 2 * 8 + from * 2 + half] = __builtin_bit_cast(float, bits << 16);
        }
  }
  if (const std::string fault = current_block->warpgroups().add(current_block->warp(), step); !fault.empty()) current_block->fail(fault);
}

void execute(const char* name, Loc loc, uint64_t left = 0, uint64_t right = 0, Product* product = nullptr) {
  StepLane payload{{name, loc, left, right}, product};
  current_block->collective(name, ~0u, &payload, &resolve_step, loc, true);
}

}  // namespace

// Eight rows of 128 bytes form a pattern of 1,024 bytes. The 16-byte chunks of a row are permuted by an exclusive or with the row index, so
// the elements of a column are in different banks. The hardware derives the row index from the address.
unsigned Operand::offset_of(unsigned k, unsigned column) const {
  const unsigned row = transposed ? k : column, along = transposed ? column : k;
  const unsigned address = start + row / 8 * stride + row % 8 * kSwizzle + along / 64 * leading + along % 64 * 2;
  return address ^ (address / kSwizzle % 8 * kUnit);
}

// ---- the products of a thread

bool AsyncProducts::Sum::untouched() const {
  return std::all_of(d, d + values.size(), [](float x) { return __builtin_bit_cast(uint32_t, x) == kUnderWay; });
}

AsyncProducts::Sum* AsyncProducts::find(const float* d) {
  const auto found = std::find_if(sums_.begin(), sums_.end(), [=](const Sum& sum) { return sum.d == d; });
  return found == sums_.end() ? nullptr : &*found;
}

void AsyncProducts::fence(const Registers& first, const Registers& second) {
  fenced_ = {first, second};
  has_fenced_ = true;
}

void AsyncProducts::begin(const Product& product) {
  Quiet quiet;
  const Sum* sum = find(product.d);
  const bool a_is_fenced = product.a ? is_fenced(product.a) : has_fenced_;
  if (!a_is_fenced || (product.accumulate && !sum && !is_fenced(product.d)))
    fail_product(product.name, product.loc, "no wgmma_fence names its registers since the last wgmma_wait");
  if (sum && !sum->untouched()) fail_product(product.name, product.loc, "d was written while an earlier product was unfinished");
  if (!sum) sums_.push_back({product.d, {product.d, product.d + product.right.columns / 2}});
  std::fill_n(product.d, product.right.columns / 2, __builtin_bit_cast(float, kUnderWay));
  products_.push_back(product);
  products_.back().group = groups_;
}

void AsyncProducts::run(const Product& product) {
  check_seen(product, "was overwritten before the wgmma_wait");
  const unsigned lane = current_block->lane();
  std::vector<float> b;  // [columns / 8][2 along k][16], the columns of this lane
  b.reserve(product.right.columns / 4 * kDepth);
  for (unsigned i = 0; i < product.right.columns / 4; ++i)
    for (unsigned k = 0; k < kDepth; ++k) b.push_back(loaded(product.right, k, i / 2 * 8 + lane % 4 * 2 + i % 2));
  float a[2][kDepth];
  for (unsigned i = 0; i < 2 * kDepth; ++i) {
    const unsigned half = i / kDepth, row = current_block->warp() % 4 * 16 + half * 8 + lane / 4;
    a[half][i % kDepth] = product.a ? product.rows[half][i % kDepth] : loaded(product.left, i % kDepth, row);
  }
  Quiet quiet;
  if (product.a && std::memcmp(product.a, product.a_at_issue, sizeof product.a_at_issue) != 0)
    fail_product(product.name, product.loc, "a was changed before the wgmma_wait");
  std::vector<float>& values = find(product.d)->values;
  for (unsigned i = 0; i < values.size(); ++i) {
    float sum = product.accumulate ? values[i] : 0;
    for (unsigned k = 0; k < kDepth; ++k) sum += a[i / 2 % 2][k] * b[(i / 4 * 2 + i % 2) * kDepth + k];
    values[i] = sum;
  }
}

void AsyncProducts::wait(unsigned groups_left, const Registers& d, Loc loc) {
  const unsigned groups = groups_ > groups_left ? groups_ - groups_left : 0;
  const auto end = std::find_if(products_.begin(), products_.end(), [=](const Product& product) { return product.group >= groups; });
  for (auto product = products_.begin(); product != end; ++product) run(*product);
  Quiet quiet;
  products_.erase(products_.begin(), end);
  fenced_ = {};
  has_fenced_ = false;
  deliver(d, loc);
}

// Writes each sum to its registers unless one of its products is unfinished.
void AsyncProducts::deliver(const Registers& d, Loc loc) {
  const auto done = [this](const Sum& sum) {
    return std::none_of(products_.begin(), products_.end(), [&](const Product& product) { return product.d == sum.d; });
  };
  for (const Sum& sum : sums_) {
    if (!done(sum)) continue;
    if (!sum.untouched()) fail_product("wgmma_wait", loc, "d was written before the wait");
    if (!d.hold(sum.d)) fail_product("wgmma_wait", loc, "the wait completes a product but does not name its d");
    std::copy(sum.values.begin(), sum.values.end(), sum.d);
  }
  std::erase_if(sums_, done);
}

void AsyncProducts::forget() {
  products_.clear();
  sums_.clear();
  fenced_ = {};
  has_fenced_ = false;
  groups_ = 0;
}

// ---- warpgroups

void Warpgroups::begin_block(unsigned warps) {
  warps_ = warps;
  logs_ = {};
}

std::string Warpgroups::add(unsigned warp, const Step& step) {
  const std::string where = std::string(step.name) + " at " + describe(step.loc);
  if (warp / kWarps * kWarps + kWarps > warps_) return where + ": the last warpgroup of the block has fewer than four warps";
  Log& log = logs_[warp / kWarps];
  unsigned& executed = log.executed[warp % kWarps];
  if (executed == log.steps.size()) log.steps.push_back(step);
  const Step& first = log.steps[executed++];
  if (std::strcmp(first.name, step.name) != 0 || std::strcmp(first.loc.file, step.loc.file) != 0 || first.loc.line != step.loc.line)
    return "divergent warpgroup: one warp is at " + where + " and another at " + first.name + " " + describe(first.loc);
  if (first.left != step.left || first.right != step.right) return where + ": the warps of the warpgroup have different descriptors";
  if (std::all_of(log.executed, log.executed + kWarps, [&](unsigned n) { return n == log.steps.size(); })) log = {};
  return {};
}

std::string Warpgroups::unfinished() const {
  for (const Log& log : logs_)
    for (unsigned warp = 0; warp < kWarps; ++warp)
      if (const unsigned n = log.executed[warp]; n < log.steps.size())
        return ricci::format_message("warp {} of warpgroup {} took no part in {} at {}",
            {warp, static_cast<unsigned>(&log - logs_.data()), log.steps[n].name, describe(log.steps[n].loc)});
  return {};
}

// ---- the asynchronous proxy

void AsyncProxy::begin_block() {
  fenced_by_.assign(kMaxThreads, false);
  fences_ = 0;
  fenced_.clear();
  seen_.clear();
}

void AsyncProxy::fence(unsigned thread, unsigned live, const SharedMemory& shared) {
  fences_ += !fenced_by_[thread];
  fenced_by_[thread] = true;
  if (fences_ == live) shared.copy_to(fenced_);
}

void AsyncProxy::written(unsigned thread) {
  fences_ -= fenced_by_[thread];
  fenced_by_[thread] = false;
}

void AsyncProxy::barrier(unsigned live) {
  if (fences_ == 0) return;
  if (fences_ == live) seen_ = fenced_;
  fenced_by_.assign(kMaxThreads, false);
  fences_ = 0;
}

bool AsyncProxy::sees(const SharedMemory& shared, unsigned offset, unsigned bytes) const {
  const auto now = static_cast<const unsigned char*>(shared.dynamic()) + offset;
  return offset + bytes <= seen_.size() && std::memcmp(now, seen_.data() + offset, bytes) == 0;
}

// ---- the functions of cuda/ptx.h

unsigned shared_address(const void* p, Loc loc) {
  if (!current_block->shared().contains(p, 1)) fail_product("descriptor", loc, "the address is not in shared memory");
  return static_cast<unsigned>(static_cast<const unsigned char*>(p) - shared_bytes());
}

void fence_proxy_async() {
  Quiet quiet;
  current_block->fence_proxy_async();
}

void wgmma_fence(const Registers& first, const Registers& second, Loc loc) {
  execute("wgmma_fence", loc);
  Quiet quiet;
  current_block->products().fence(first, second);
}

void wgmma(float* d, unsigned columns, const uint32_t* a, uint64_t left, uint64_t right, bool transposed, bool accumulate, Loc loc) {
  constexpr const char* kName = "wgmma_bf16";
  Product product{kName, d, a, {}, decoded(kName, right, columns, transposed, loc), accumulate, loc};
  if (a) std::copy_n(a, 4, product.a_at_issue);
  else product.left = decoded(kName, left, kRows, false, loc);
  check_seen(product, "was written without a fence_proxy_async of all threads and a barrier after it");
  execute(kName, loc, left, right, &product);
  current_block->products().begin(product);
}

void wgmma_commit(Loc loc) {
  execute("wgmma_commit", loc);
  Quiet quiet;
  current_block->products().commit();
}

void wgmma_wait(unsigned groups_left, const Registers& d, Loc loc) {
  execute("wgmma_wait", loc);
  current_block->products().wait(groups_left, d, loc);
}

}  // namespace emu
