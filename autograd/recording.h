// Defines which tape records on this thread. Tapes and NoTapes form a stack, and the innermost one applies. An evaluation in the middle of
// training records nothing, and recompute() (autograd/recompute.h) records on a second tape.
#pragma once

namespace ricci {

class Tape;

class RecordingScope {
 public:
  static Tape* tape() { return innermost_ ? innermost_->tape_ : nullptr; }  // null: nothing is recorded
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 protected:
  explicit RecordingScope(Tape* tape) : tape_(tape), outer_(innermost_) { innermost_ = this; }
  ~RecordingScope() {  // scopes can end in any order, each on the thread that made it
    RecordingScope** link = &innermost_;
    while (*link != this) link = &(*link)->outer_;
    *link = outer_;
  }

 private:
  static inline constinit thread_local RecordingScope* innermost_ = nullptr;
  Tape* tape_;
  RecordingScope* outer_;
};

// While a NoTape is alive, nothing is recorded on this thread.
class NoTape : private RecordingScope {
 public:
  NoTape() : RecordingScope(nullptr) {}
};

}  // namespace ricci
