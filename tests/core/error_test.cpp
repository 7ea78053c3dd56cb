#include "core/error.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

using namespace ricci;

TEST_CASE("numbers in messages are printed as they are, the largest and the smallest too") {
  CHECK(format_message("{} {}", {std::numeric_limits<uint64_t>::max(), std::numeric_limits<size_t>::max()}) ==
        "18446744073709551615 18446744073709551615");
  CHECK(format_message("{} {}", {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) ==
        "-9223372036854775808 9223372036854775807");
  CHECK(format_message("{} {} {}", {-1, uint32_t{4294967295}, uint8_t{200}}) == "-1 4294967295 200");
  CHECK(format_message("{:#x} {:>4}", {std::numeric_limits<uint64_t>::max(), 7u}) == "0xffffffffffffffff    7");
}

TEST_CASE("letters, texts and real numbers in messages") {
  CHECK(format_message("{} {} {:.3g} {}", {'k', "text", 2.0f / 3, std::string("string")}) == "k text 0.667 string");
  CHECK_THROWS_WITH_AS(fail("op: {} is wrong", {uint64_t{1} << 63}), "op: 9223372036854775808 is wrong", Error);
}
