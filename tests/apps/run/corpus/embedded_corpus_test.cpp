// The embedded text is the same in every build: runs that learn it go on after an update, and evaluations score the same bytes.
#include <doctest/doctest.h>

#include "apps/run/corpus/corpus.h"
#include "core/files/checksum.h"

TEST_CASE("the embedded text never changes") {
  CHECK(ricci::apps::embedded_corpus().size() == 459'230);
  CHECK(ricci::xxh64(ricci::apps::embedded_corpus()) == 0x86240af4e9349dcbu);
}
