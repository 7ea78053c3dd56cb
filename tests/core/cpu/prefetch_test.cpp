// Values made ahead come in their order, errors in their turn, and nobody waits for a thread that is not needed any more.
#include "core/cpu/prefetch.h"

#include <doctest/doctest.h>

#include <atomic>

#include "core/error.h"

using namespace ricci;

TEST_CASE("values come in their order, and then nothing") {
  int made = 0;
  Prefetch<int> values([&]() -> std::optional<int> { return made < 1000 ? std::optional(made++) : std::nullopt; }, 3);
  for (int i = 0; i < 1000; ++i) CHECK(values.next() == i);
  CHECK(values.next() == std::nullopt);
  CHECK(values.next() == std::nullopt);
}

TEST_CASE("no more values are made than asked for ahead") {
  std::atomic<int> made = 0;
  Prefetch<int> values([&]() -> std::optional<int> { return made++; }, 4);
  CHECK(values.next() == 0);
  for (int i = 0; i < 200 && made < 5; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(made == 5);  // one taken, four ahead
}

TEST_CASE("an error comes after the values before it, every time it is asked for") {
  int made = 0;
  Prefetch<int> values([&]() -> std::optional<int> { return made == 2 ? (fail("value {}", {made}), 0) : made++; }, 5);
  CHECK(values.next() == 0);
  CHECK(values.next() == 1);
  CHECK_THROWS_WITH_AS(values.next(), "value 2", Error);
  CHECK_THROWS_WITH_AS(values.next(), "value 2", Error);
}
