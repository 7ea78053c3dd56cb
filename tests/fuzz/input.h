// Common to every fuzz target: its input as a file, and its possible errors.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

// Called by libFuzzer, and under the name of its target by replay/replay.cpp. An input can end only in a ricci::Error of one line.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace fuzz {

// A file in memory, with a path that programs can open.
class InputFile {
 public:
  InputFile() : descriptor_(::memfd_create("input", 0)) {}
  std::string write(std::string_view bytes) {
    if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      std::abort();
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

 private:
  int descriptor_;
};

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// The texts between the zero bytes of an input; at least one.
inline std::vector<std::string> parts_of(std::string_view bytes) {
  std::vector<std::string> parts;
  for (size_t at = 0;;) {
    const size_t end = bytes.find('\0', at);
    parts.emplace_back(bytes.substr(at, end - at));
    if (end == bytes.npos) return parts;
    at = end + 1;
  }
}

// Runs f and ignores a ricci::Error.
template <class F> void attempt(const F& f) {
  try {
    f();
  } catch (const ricci::Error& error) {
    const std::string_view message = error.what();
    require(!message.empty() && message.size() < 2000 && message.find('\n') == message.npos, "an error is one line");
  }
}

}  // namespace fuzz
