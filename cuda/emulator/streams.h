// Streams: work of one stream runs in order, work of two streams in no particular order. Queued work runs as late as possible: when
// something waits for it. So a program that forgets a wait finds the old values, and the mistake shows. Options::order decides which other
// work runs by then. forward: only the work that was waited for; reverse: all work of the other streams first; random: parts of it, mixed.
// The main stream runs its work at once, except with Options::lazy. An error in work appears at the wait; the work queued after it still
// runs.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "cuda/emulator/emulator.h"

namespace emu {

struct Queue;

class Stream {
 public:
  Stream();
  ~Stream() = default;  // queued work stays queued
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Queue& queue() const { return *queue_; }

 private:
  std::shared_ptr<Queue> queue_;
};

Stream& main_stream();
Stream& current_stream();                       // the calling OS thread's: the argument of its last use_stream, or the main one
void use_stream(Stream* stream);                // a null pointer selects the main stream; `stream` must outlive its use
void queue_or_run(std::function<void()> work);  // on the current stream

// Between begin and end, work that this OS thread would queue or run is recorded instead, in order.
using Recorded = std::vector<std::function<void()>>;
void begin_recording();
Recorded end_recording();

// Work queued on `stream` from now on runs after the work that `other` holds now.
void wait_for(Stream& stream, Stream& other);
void synchronize(Stream& stream);
void synchronize();  // all streams

// emu::release in the order of the current stream. The memory is not used again until all streams are empty: a read gives NaN, and a write
// is an error.
void release_in_order(void* device);

}  // namespace emu
