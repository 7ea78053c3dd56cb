#include "cuda/emulator/queue.h"

#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/error.h"
#include "cuda/emulator/emulator.h"
#include "cuda/emulator/launch.h"
#include "cuda/emulator/memory/device_memory.h"

namespace emu {
namespace {

struct Queue {
  std::recursive_mutex mutex;  // held while work runs; recursive, since work can queue and wait
  std::deque<std::function<void()>> work;
  std::vector<Retired> retired;
  std::exception_ptr error;
};

Queue& queue() {
  static Queue& queue = *new Queue;  // outlives everything that holds device memory
  return queue;
}

thread_local Recorded* recorded = nullptr;  // null if nothing is recorded

bool runs_at_once() { return !recorded && !options().lazy; }

void run_all(Queue& q) {
  while (!q.work.empty()) {
    const std::function<void()> work = std::move(q.work.front());
    q.work.pop_front();
    try {
      work();
    } catch (...) {
      if (!q.error) q.error = std::current_exception();
    }
  }
}

}  // namespace

void queue_or_run(std::function<void()> work) {
  if (recorded) return recorded->push_back(std::move(work));
  if (runs_at_once()) return work();
  const std::lock_guard lock(queue().mutex);
  queue().work.push_back(std::move(work));
}

void synchronize() {
  Queue& q = queue();
  const std::lock_guard lock(q.mutex);
  run_all(q);
  for (const Retired& memory : std::exchange(q.retired, {})) {
    const size_t written = give_back(memory);
    if (written < memory.bytes && !q.error)
      q.error = std::make_exception_ptr(ricci::Error(
          ricci::format_message("emulator: device memory of {} bytes was written after its release, at byte {}", {memory.bytes, written})));
  }
  if (q.error) std::rethrow_exception(std::exchange(q.error, nullptr));
}

void begin_recording() { recorded = new Recorded; }

Recorded end_recording() {
  const std::unique_ptr<Recorded> all(std::exchange(recorded, nullptr));
  return std::move(*all);
}

void release_in_order(void* device) {
  if (!device) return;
  if (runs_at_once()) {
    const std::lock_guard lock(queue().mutex);
    if (queue().work.empty()) return release(device);
  }
  queue_or_run([device] {
    const std::lock_guard lock(queue().mutex);
    queue().retired.push_back(retire(device));
  });
}

void launch(const Launch& launch, void (*body)(const void*), const void* kernel, size_t bytes) {
  check_arguments(launch, kernel, bytes);
  if (runs_at_once()) return run(launch, body, kernel);
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
