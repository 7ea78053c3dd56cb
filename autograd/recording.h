// The tape that records on this thread, and the tapes that still wait for their backward.
#pragma once
#include <cstdint>

namespace ricci {

class Tape;

// Tapes and NoTapes form a stack: the youngest one alive decides what happens to the ops of this thread. They may end in any
// order, each on the thread that made it.
class RecordingScope {
 public:
  static Tape* tape();  // the tape of the youngest scope alive on this thread; null if nothing is recorded
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 protected:
  explicit RecordingScope(Tape* tape);  // with a null pointer nothing is recorded as long as it is the youngest
  ~RecordingScope();

 private:
  Tape* tape_;
  RecordingScope* older_;
};

// While it lives, nothing is recorded on this thread: evaluation in the middle of training.
class NoTape : private RecordingScope {
 public:
  NoTape() : RecordingScope(nullptr) {}
};

// A tape whose backward has not ended is open, on whatever thread it is: its tensors still expect a gradient.
uint32_t open_tape();              // the number of a new tape; the first is 1
void close_tape(uint32_t number);  // again has no effect
bool is_open(uint32_t number);

}  // namespace ricci
