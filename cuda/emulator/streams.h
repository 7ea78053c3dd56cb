// Streams: work of one stream runs in order, work of two in no particular order. Work that is queued here runs when it is waited for, and
// without a wait it does not run: a program that forgets a wait finds what was there before. Options::order decides what else runs by
// then. forward: only what was waited for; reverse: all that the other streams hold, before anything of this one; random: parts of it,
// mixed. The main stream runs its work at once, except with Options::lazy. An error in work appears where it is waited
// for; what follows it in the queues still runs.
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
  ~Stream() = default;  // what is queued stays queued
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Queue& queue() const { return *queue_; }

 private:
  std::shared_ptr<Queue> queue_;
};

Stream& main_stream();
Stream& current_stream();                       // the calling OS thread's: the main one, or the one of use_stream
void use_stream(Stream* stream);                // a null pointer is the main one. To be outlived by `stream`
void queue_or_run(std::function<void()> work);  // on the current stream

// From begin to end, what this OS thread would queue or run is returned instead, in order.
using Recorded = std::vector<std::function<void()>>;
void begin_recording();
Recorded end_recording();

// All that is queued on `stream` from now on runs after what `other` holds now.
void wait_for(Stream& stream, Stream& other);
void synchronize(Stream& stream);
void synchronize();  // all streams

// emu::release in the order of the current stream. Until all streams are empty the memory is not used again: NaN is read
// from it, and a write is an error.
void release_in_order(void* device);

}  // namespace emu
