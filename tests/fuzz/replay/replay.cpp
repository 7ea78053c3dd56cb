// Gives every file of a folder to a fuzz target, each in a process of its own with 1 s and 256 MiB: for compilers without
// libFuzzer, and for findings that must not come back.
//   ricci-replay-TARGET FOLDER
#include <cinttypes>

#include "core/files/file.h"
#include "tests/bounded.h"
#include "tests/fuzz/input.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]), 2;
  const ricci::Folder folder(argv[1]);
  int failed = 0, inputs = 0;
  for (const std::string& name : folder.names()) {
    const std::string bytes = ricci::read_text(ricci::FilePlace(folder, name));
    const std::string fault = test::bounded_error(
        [&] { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()); }, {.seconds = 1, .mebibytes = 256});
    if (fault != "no error") std::printf("FAILED  %s: %s\n", name.c_str(), fault.c_str()), ++failed;
    ++inputs;
  }
  std::printf("%d inputs, %d failed\n", inputs, failed);
  return failed > 0 || inputs == 0;
}
