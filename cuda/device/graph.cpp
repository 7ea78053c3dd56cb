// Recording needs memory at fixed addresses. measure() runs the work and repeats its allocations on an OffsetHeap. record() then serves the
// same allocations from one block, at these offsets.
#include "cuda/device/graph.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/memory/memory.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "cuda/trace.h"

namespace ricci {
namespace {

struct Block {
  Device device;
  char* data;
  int64_t bytes;
  OffsetHeap heap = {};
  bool owned = true;  // true while the graph exists

  bool contains(const void* p) const { return p >= data && p < data + bytes; }
};

// The work between the beginning and the end of measure() or record().
struct Session {
  Device device;
  Block* block;  // null while measuring
  OffsetHeap* plan = nullptr;
  std::map<void*, int64_t> offset = {};                  // the offsets of tensors allocated since the beginning
  std::vector<std::pair<void*, int64_t>> released = {};  // memory allocated earlier, to be freed after the recording
};

thread_local Session* session = nullptr;

// A device's allocator from its first graph on. It passes requests outside of graphs to the previous allocator.
class GraphMemory final : public Allocator {
 public:
  explicit GraphMemory(Device device) : device_(device), base_(allocator_of(device)) { set_allocator(device, this); }

  void* allocate(int64_t bytes) override {
    if (!session || session->device != device_) return base_.allocate(bytes);
    if (session->block) return place(*session->block, bytes);
    void* const data = base_.allocate(bytes);
    if (data) session->offset[data] = session->plan->allocate(bytes);
    return data;
  }
  void release(void* data, int64_t bytes) override {
    if (release_in_block(data)) return;
    if (session && session->device == device_) {
      if (session->block) {
        session->released.emplace_back(data, bytes);
        return;
      }
      if (const auto found = session->offset.find(data); found != session->offset.end()) {
        session->plan->release(found->second);
        session->offset.erase(found);
      }
    }
    base_.release(data, bytes);
  }
  std::string room() const override { return base_.room(); }

  // Returns null if no memory is left.
  Block* add(int64_t bytes) {
    char* const data = static_cast<char*>(base_.allocate(bytes));
    if (!data) return nullptr;
    const std::lock_guard locked(lock_);
    blocks_.push_back(std::unique_ptr<Block>(new Block{device_, data, bytes}));
    return blocks_.back().get();
  }
  void give_up(Block* block) {
    const std::lock_guard locked(lock_);
    block->owned = false;
    remove_unused();
  }

 private:
  void* place(Block& block, int64_t bytes) {
    const std::lock_guard locked(lock_);
    const int64_t offset = block.heap.allocate(bytes);
    if (block.heap.extent() <= block.bytes) return block.data + offset;
    block.heap.release(offset);
    fail("graph: the work needs more memory than the {} bytes that were measured", {block.bytes});
  }
  bool release_in_block(void* data) {
    const std::lock_guard locked(lock_);
    for (const auto& block : blocks_) {
      if (!block->contains(data)) continue;
      block->heap.release(static_cast<char*>(data) - block->data);
      remove_unused();
      return true;
    }
    return false;
  }
  void remove_unused() {
    std::erase_if(blocks_, [this](const std::unique_ptr<Block>& block) {
      if (block->owned || !block->heap.empty()) return false;
      base_.release(block->data, block->bytes);
      return true;
    });
  }

  Device device_;
  Allocator& base_;
  std::mutex lock_;  // guards the blocks
  std::vector<std::unique_ptr<Block>> blocks_;
};

GraphMemory& graph_memory(Device device) {
  if (device == Device::cpu) fail("graph: graphs are not available on the cpu");
  require(device);
  if (device == Device::cuda) {
    static GraphMemory& cuda = *new GraphMemory(device);  // outlives every tensor
    return cuda;
  }
  static GraphMemory& emulated = *new GraphMemory(device);
  return emulated;
}

class Within {
 public:
  explicit Within(Session& s) : outer_(std::exchange(session, &s)) {}
  ~Within() { session = outer_; }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  Session* outer_;
};

void* recorded(DeviceMemory& memory, const std::function<void()>& work) {
  memory.begin_recording();
  try {
    work();
  } catch (...) {
    memory.drop_recording();
    throw;
  }
  return memory.end_recording();
}

}  // namespace

Graph::Graph(Device device) : device_(device) { graph_memory(device); }

Graph::~Graph() {
  if (graph_) device_memory(device_).end_graph(graph_);
}

void Graph::measure(const std::function<void()>& work) {
  plan_ = {};
  measured_ = false;
  Session measuring{device_, nullptr, &plan_};
  const Within within(measuring);
  work();
  measured_ = true;
}

void Graph::record(const std::function<void()>& work) {
  if (!measured_) fail("graph: call measure() before record()");
  if (graph_) fail("graph: the graph is already recorded");
  if (session) fail("graph: a graph is already being recorded");
  GraphMemory& memory = graph_memory(device_);
  device_memory(device_).trim();  // the pool holds these bytes in parts too small for one block
  Block* const block = memory.add(plan_.extent());
  if (!block) fail("graph: out of memory on {} (asked for {})", {name_of(device_), show_bytes(plan_.extent())});
  block_ = std::shared_ptr<void>(block, [&memory](void* b) { memory.give_up(static_cast<Block*>(b)); });
  Session recording{device_, block};
  std::exception_ptr error;
  try {
    const Within within(recording);
    graph_ = recorded(device_memory(device_), work);
  } catch (...) {
    error = std::current_exception();
    block_.reset();
  }
  for (const auto& [data, bytes] : recording.released) memory.release(data, bytes);
  if (error) std::rethrow_exception(error);
}

void Graph::launch() const {
  if (!graph_) fail("graph: nothing is recorded; call record() before launch()");
  device_memory(device_).launch_graph(graph_);
  trace::end("graph", "", device_);
}

int64_t OffsetHeap::allocate(int64_t bytes) {
  const int64_t size = std::max(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
  auto best = holes_.end();
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole)
    if (hole->second >= size && (best == holes_.end() || hole->second < best->second)) best = hole;
  int64_t offset = end_;
  if (best == holes_.end()) {
    end_ += size;
    extent_ = std::max(extent_, end_);
  } else {
    offset = best->first;
    if (best->second > size) holes_[offset + size] = best->second - size;
    holes_.erase(offset);
  }
  used_[offset] = size;
  return offset;
}

void OffsetHeap::release(int64_t offset) {
  const auto place = used_.find(offset);
  if (place == used_.end()) fail("offset heap: nothing was allocated at offset {}", {offset});
  int64_t first = offset, after = offset + place->second;
  used_.erase(place);
  const auto next = holes_.find(after);
  if (next != holes_.end()) {
    after += next->second;
    holes_.erase(next);
  }
  auto before = holes_.lower_bound(first);
  if (before != holes_.begin() && (--before)->first + before->second == first) {
    first = before->first;
    holes_.erase(before);
  }
  if (after == end_) end_ = first;
  else holes_[first] = after - first;
}

bool recording_graph() { return session && session->block; }

}  // namespace ricci
