// XXH64 (Y. Collet, github.com/Cyan4973/xxHash, doc/xxhash_spec.md): a fast hash that tells whether the bytes of a file are
// the ones that were written. Several GB/s; not for secrets.
#pragma once
#include <cstdint>
#include <string_view>

namespace ricci {

// The hash of the bytes. A text in pieces: the hash of one piece is the seed of the next.
uint64_t xxh64(std::string_view bytes, uint64_t seed = 0);

}  // namespace ricci
