#include "apps/corpus/embedded_corpus.h"

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/files/file.h"
#include "core/files/hash.h"

// The assembler puts the file that CMake joined from the sources between two labels.
__asm__(
    ".section .rodata\n"
    ".global ricci_embedded_corpus\n"
    "ricci_embedded_corpus:\n"
    ".incbin \"" RICCI_EMBEDDED_CORPUS "\"\n"
    ".global ricci_embedded_corpus_end\n"
    "ricci_embedded_corpus_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" const char ricci_embedded_corpus[], ricci_embedded_corpus_end[];

namespace ricci::apps {
std::string_view embedded_corpus() {
  return {ricci_embedded_corpus, static_cast<size_t>(ricci_embedded_corpus_end - ricci_embedded_corpus)};
}

std::string embedded_corpus_file(const std::string& folder) {
  namespace fs = std::filesystem;
  const std::string name = format_message("embedded-{:016x}.txt", {hash_bytes(embedded_corpus())});
  for (const fs::path& place : {fs::path(folder), fs::temp_directory_path()}) {
    std::error_code error;
    if (place.empty() || (fs::create_directories(place, error), error)) continue;
    const fs::path path = place / name;
    if (fs::exists(path, error) && fs::file_size(path, error) == embedded_corpus().size()) return path.string();
    try {
      write_file_atomically(path.string(), embedded_corpus());
      return path.string();
    } catch (const Error&) {
      continue;
    }
  }
  fail("the embedded corpus: no folder to unpack it to, neither '{}' nor '{}'", {folder, fs::temp_directory_path().string()});
}

}  // namespace ricci::apps
