// FNV-1a, 64 bits: names cache files, recognises changed inputs, gives a random stream to a name; not for secrets.
#pragma once
#include <cstdint>
#include <string_view>

namespace ricci {

inline uint64_t hash_bytes(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325u) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

}  // namespace ricci
