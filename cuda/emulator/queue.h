// The work of the device, in order. It runs immediately, or, with Options::lazy, when something waits for it. A program that forgets a wait
// then sees the old values. An error in queued work appears at the wait; the work after it still runs.
#pragma once
#include <functional>
#include <vector>

namespace emu {

void queue_or_run(std::function<void()> work);
void synchronize();  // waits for all work

// Between begin and end, work that this OS thread would queue or run is recorded, in order.
using Recorded = std::vector<std::function<void()>>;
void begin_recording();
Recorded end_recording();

// Like emu::release, but in the order of the work. Until the queue is empty, a read of the memory gives NaN, and a write is an error.
void release_in_order(void* device);

}  // namespace emu
