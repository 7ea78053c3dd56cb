// What a pipe or a terminal gives to a program.
#pragma once
#include <cstdio>
#include <string>

#include "core/error.h"

namespace ricci::apps {

// All of stdin, as it is. Error: it cannot be read.
inline std::string read_stdin() {
  std::string text;
  char block[1 << 16];
  while (const size_t bytes = std::fread(block, 1, sizeof block, stdin)) text.append(block, bytes);
  if (std::ferror(stdin)) fail("cannot read from stdin");
  return text;
}

}  // namespace ricci::apps
