#include "apps/run/corpus.h"

// The assembler puts the file that CMake took out of embedded.tar.gz between two labels.
__asm__(".section .rodata\n"
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

}  // namespace ricci::apps
