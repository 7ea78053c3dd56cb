#include "autograd/recording.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace ricci {
namespace {

thread_local RecordingScope* youngest = nullptr;

std::mutex lock;  // for what follows
uint32_t last_number = 0;
std::vector<uint32_t>& open_tapes() {
  static std::vector<uint32_t>& all = *new std::vector<uint32_t>;  // outlives every tape
  return all;
}

}  // namespace

Tape* RecordingScope::tape() { return youngest ? youngest->tape_ : nullptr; }

RecordingScope::RecordingScope(Tape* tape) : tape_(tape), older_(youngest) { youngest = this; }

RecordingScope::~RecordingScope() {
  for (RecordingScope** link = &youngest; *link; link = &(*link)->older_) {
    if (*link != this) continue;
    *link = older_;
    return;
  }
}

uint32_t open_tape() {
  const std::lock_guard locked(lock);
  open_tapes().push_back(++last_number);
  return last_number;
}

void close_tape(uint32_t number) {
  const std::lock_guard locked(lock);
  std::erase(open_tapes(), number);
}

bool is_open(uint32_t number) {
  const std::lock_guard locked(lock);
  return std::find(open_tapes().begin(), open_tapes().end(), number) != open_tapes().end();
}

}  // namespace ricci
