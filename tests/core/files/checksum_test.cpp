// XXH64 against values of the reference implementation: every tail length, several blocks, seeds.
#include "core/files/checksum.h"

#include <doctest/doctest.h>

#include <string>

using ricci::xxh64;

TEST_CASE("xxh64: the values of the reference implementation") {
  CHECK(xxh64("") == 0xef46db3751d8e999u);
  CHECK(xxh64("abc") == 0x44bc2cf5ad770999u);
  std::string bytes(200, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i * 7 + i * 13 + 5);
  struct Case {
    size_t length;
    uint64_t seed, hash;
  };
  for (const Case& c : std::initializer_list<Case>{
           {0, 0x0u, 0xef46db3751d8e999u},
           {1, 0x0u, 0x50ff15a81340970fu},
           {3, 0x7u, 0xbbdba65e54839df1u},
           {4, 0x0u, 0x56ad15c35c9774fdu},
           {7, 0x9e3779b185ebca87u, 0xcb8b8825798d19bbu},
           {8, 0x0u, 0x8e94d1fc5ae68313u},
           {12, 0x1u, 0x53d7847abde87a48u},
           {15, 0x0u, 0x477c43cf9858c4dbu},
           {31, 0x0u, 0x18e187606ddc662cu},
           {32, 0x0u, 0xfb5a878e50332551u},
           {33, 0x2u, 0xfc5824d3c03ce6a7u},
           {63, 0x0u, 0xb9a05dbdec8770deu},
           {64, 0xffffffffffffffffu, 0x2da0220e26bf836cu},
           {100, 0x0u, 0xf38896434bdcd7acu},
           {200, 0x9e3779b185ebca87u, 0x80b459a2d3512a10u},
       }) {
    CAPTURE(c.length);
    CHECK(xxh64(std::string_view(bytes).substr(0, c.length), c.seed) == c.hash);
  }
}
