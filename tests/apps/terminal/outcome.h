// A call of run_app: its exit code and what came out of it.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "apps/terminal/cli.h"
#include "tests/data/files.h"

namespace test_data {

// Everything that goes to a descriptor while f runs.
template <class F> std::string captured(int descriptor, std::FILE* stream, const F& f) {
  const ScratchFolder folder;
  const std::string path = folder.write("out", "");
  std::fflush(stream);
  const int old = ::dup(descriptor);
  std::FILE* file = std::fopen(path.c_str(), "w");
  ::dup2(::fileno(file), descriptor);
  f();
  std::fflush(stream);
  ::dup2(old, descriptor);
  ::close(old);
  std::fclose(file);
  return read_file(path);
}

struct Outcome {
  int code = -1;
  std::string out, err;
};

inline Outcome run(std::vector<const char*> words, const std::function<void(CLI::App&)>& setup, const std::function<int()>& main) {
  words.insert(words.begin(), "build/ricci-train");
  Outcome outcome;
  outcome.err = captured(STDERR_FILENO, stderr, [&] {
    outcome.out = captured(STDOUT_FILENO, stdout, [&] {
      outcome.code =
          ricci::apps::run_app(static_cast<int>(words.size()), words.data(), {"ricci-train", "Trains a language model."}, setup, main);
    });
  });
  return outcome;
}

}  // namespace test_data
