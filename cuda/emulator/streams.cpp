// Queues of work, one per stream, and one lock for all of them, because a wait for one stream can run work of the others.
#include "cuda/emulator/streams.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cuda/emulator/launch.h"
#include "cuda/emulator/memory/device_memory.h"

namespace emu {

struct Queue {
  std::deque<std::function<void()>> work;
  uint64_t done = 0;
  uint64_t queued() const { return done + work.size(); }
};

namespace {

struct Streams {
  std::recursive_mutex mutex;  // held while work runs; recursive because work can queue and wait
  std::vector<std::shared_ptr<Queue>> queues;
  std::vector<Retired> retired;
  std::exception_ptr error;
  uint64_t random = 1;

  void run_one(Queue& queue);
  void run_until(Queue& queue, uint64_t count);
  void run_in_order(Queue& queue, Options::Order order);
  void run_mixed(Queue& queue);
  bool idle() const;
  void tidy();
};

Streams& streams() {
  static Streams& streams = *new Streams;  // outlives everything that holds device memory
  return streams;
}

thread_local Stream* used = nullptr;
thread_local Recorded* recorded = nullptr;  // null if nothing is recorded

void Streams::run_one(Queue& queue) {
  const std::function<void()> work = std::move(queue.work.front());
  queue.work.pop_front();
  try {
    work();
  } catch (...) {
    if (!error) error = std::current_exception();
  }
  ++queue.done;
}

void Streams::run_until(Queue& queue, uint64_t count) {
  while (queue.done < count && !queue.work.empty()) run_one(queue);
}

// Runs work of random streams until the work of this one is done.
void Streams::run_mixed(Queue& queue) {
  random = (options().seed + 1) * 0x9e3779b97f4a7c15u | 1;
  const uint64_t target = queue.queued();
  while (queue.done < target) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    Queue& next = *queues[(random >> 16) % queues.size()];
    if (!next.work.empty()) run_one(next);
  }
}

void Streams::run_in_order(Queue& queue, Options::Order order) {
  if (order == Options::Order::random) return run_mixed(queue);
  const std::vector<std::shared_ptr<Queue>> all = queues;  // a copy, because work can make streams
  if (order == Options::Order::reverse)
    for (auto other = all.rbegin(); other != all.rend(); ++other)
      if (other->get() != &queue) run_until(**other, (*other)->queued());
  run_until(queue, queue.queued());
}

bool Streams::idle() const {
  return std::all_of(queues.begin(), queues.end(), [](const auto& queue) { return queue->work.empty(); });
}

// After a wait: forgets streams that have ended and are empty, frees memory, reports errors.
void Streams::tidy() {
  std::erase_if(queues, [](const auto& queue) { return queue->work.empty() && queue.use_count() == 1; });
  if (idle())
    for (const Retired& memory : std::exchange(retired, {})) {
      const size_t written = give_back(memory);
      if (written < memory.bytes && !error)
        error = std::make_exception_ptr(ricci::Error(ricci::format_message(
            "emulator: device memory of {} bytes was written after its release, at byte {}", {memory.bytes, written})));
    }
  if (error) std::rethrow_exception(std::exchange(error, nullptr));
}

bool runs_at_once(const Stream& stream) { return !recorded && &stream == &main_stream() && !options().lazy; }

}  // namespace

Stream::Stream() : queue_(std::make_shared<Queue>()) {
  const std::lock_guard lock(streams().mutex);
  streams().queues.push_back(queue_);
}

Stream& main_stream() {
  static Stream& stream = *new Stream;
  return stream;
}

Stream& current_stream() { return used ? *used : main_stream(); }
void use_stream(Stream* stream) { used = stream; }

void begin_recording() { recorded = new Recorded; }

Recorded end_recording() {
  const std::unique_ptr<Recorded> all(std::exchange(recorded, nullptr));
  return std::move(*all);
}

void queue_or_run(std::function<void()> work) {
  if (recorded) return recorded->push_back(std::move(work));
  Stream& stream = current_stream();
  if (runs_at_once(stream)) return work();
  const std::lock_guard lock(streams().mutex);
  stream.queue().work.push_back(std::move(work));
}

void wait_for(Stream& stream, Stream& other) {
  const std::lock_guard lock(streams().mutex);
  const uint64_t count = other.queue().queued();
  for (const std::shared_ptr<Queue>& queue : streams().queues) {
    if (queue.get() != &other.queue()) continue;
    auto wait = [queue, count] { streams().run_until(*queue, count); };
    if (!runs_at_once(stream)) return stream.queue().work.push_back(std::move(wait));
    wait();
    return streams().tidy();
  }
}

void synchronize(Stream& stream) {
  const std::lock_guard lock(streams().mutex);
  streams().run_in_order(stream.queue(), options().order);
  streams().tidy();
}

void synchronize() {
  const std::lock_guard lock(streams().mutex);
  while (!streams().idle()) {
    const std::vector<std::shared_ptr<Queue>> all = streams().queues;
    for (const auto& queue : all) streams().run_in_order(*queue, options().order);
  }
  streams().tidy();
}

void release_in_order(void* device) {
  if (!device) return;
  if (runs_at_once(current_stream())) {
    const std::lock_guard lock(streams().mutex);
    if (streams().idle()) return release(device);
  }
  queue_or_run([device] {
    const std::lock_guard lock(streams().mutex);
    streams().retired.push_back(retire(device));
  });
}

void launch(const Launch& launch, void (*body)(const void*), const void* kernel, size_t bytes) {
  check_arguments(launch, kernel, bytes);
  if (runs_at_once(current_stream())) return run(launch, body, kernel);
  check_launch(launch);
  struct alignas(64) Piece {
    char bytes[64];
  };
  std::vector<Piece> copy((bytes + sizeof(Piece) - 1) / sizeof(Piece));
  std::memcpy(copy.data(), kernel, bytes);
  queue_or_run([launch, body, name = std::string(launch.name), copy = std::move(copy)] {
    Launch named = launch;
    named.name = name.c_str();
    run(named, body, copy.data());
  });
}

}  // namespace emu
