#include "core/cpu/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"

using namespace ricci;

namespace {

// Restores the number of threads at the end of a test.
struct Threads {
  int before = thread_count();
  explicit Threads(int count) { set_thread_count(count); }
  ~Threads() { set_thread_count(before); }
};

// The number of times that one call visited each index.
std::vector<int> visits(int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> counts(static_cast<size_t>(n));
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
  });
  return {counts.begin(), counts.end()};
}

}  // namespace

TEST_CASE("of several errors the first in order reaches the caller, and the other chunks run all the same") {
  for (const int threads : {1, 2, 7}) {
    const Threads count(threads);
    for (int round = 0; round < 200; ++round) {
      std::atomic<int> ran = 0;
      std::string told;
      try {
        parallel_for_first_error(1000, 8, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            ++ran;
            if (i % 50 == 13) fail("{}", {i});
          }
        });
      } catch (const Error& error) {
        told = error.what();
      }
      CHECK(told == "13");
      CHECK(ran > 800);
    }
  }
  CHECK_NOTHROW(parallel_for_first_error(0, 8, [](int64_t, int64_t) { fail("no"); }));
}

TEST_CASE("every index is visited once, whatever the threads and the grain") {
  for (int threads : {1, 2, 3, 8}) {
    const Threads set(threads);
    for (int64_t n : {0, 1, 2, 7, 64, 1000})
      for (int64_t grain : {0, 1, 3, 64, 5000}) CHECK(visits(n, grain) == std::vector<int>(static_cast<size_t>(n), 1));
  }
}

TEST_CASE("chunks begin where the grain says, not where the number of threads would have it") {
  for (int threads : {1, 4}) {
    const Threads set(threads);
    std::vector<std::atomic<int64_t>> ends(100);
    parallel_for(100, 8, [&](int64_t begin, int64_t end) { ends[static_cast<size_t>(begin)] = end; });
    for (int64_t i = 0; i < 100; ++i) CHECK(ends[static_cast<size_t>(i)] == (i % 8 ? 0 : std::min<int64_t>(i + 8, 100)));
  }
}

TEST_CASE("many short calls in a row, with sleeping and with waking threads") {
  const Threads set(4);
  int64_t total = 0;
  for (int call = 0; call < 3000; ++call) {
    std::atomic<int64_t> sum{0};
    parallel_for(call % 9, 1, [&](int64_t begin, int64_t) { sum += begin; });
    total += sum;
    if (call % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than threads spin
  }
  int64_t expected = 0;
  for (int call = 0; call < 3000; ++call) expected += (call % 9) * (call % 9 - 1) / 2;
  CHECK(total == expected);
}

TEST_CASE("an exception reaches the caller, and the next call works") {
  const Threads set(3);
  auto bad = [] {
    parallel_for(100, 1, [](int64_t begin, int64_t) {
      if (begin == 41) fail("chunk {}", {begin});
    });
  };
  CHECK_THROWS_WITH_AS(bad(), "chunk 41", Error);
  CHECK(visits(50, 1) == std::vector<int>(50, 1));
}

TEST_CASE("calls within a call, and from several threads at once") {
  const Threads set(4);
  std::atomic<int64_t> inner{0};
  parallel_for(10, 1, [&](int64_t, int64_t) { parallel_for(10, 1, [&](int64_t begin, int64_t) { inner += begin; }); });
  CHECK(inner == 450);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      for (int call = 0; call < 200; ++call) wrong += visits(20, 1) != std::vector<int>(20, 1);
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("less than one thread is an error") { CHECK_THROWS_WITH_AS(set_thread_count(0), "threads: expected at least 1, got 0", Error); }

TEST_CASE("parallel: work that is not wanted any more is given up at its next parallel_for") {
  static bool unwanted = false;
  unwanted = false;
  int calls = 0;
  const auto work = [&] { parallel_for(10, 10, [&](int64_t, int64_t) { ++calls; }); };
  {
    const StopWhen stop([] { return unwanted; });
    work();
    unwanted = true;
    CHECK_THROWS_AS(work(), Stopped);
    {
      const StopWhen inner([] { return false; });
      work();
    }
    CHECK_THROWS_AS(work(), Stopped);
  }
  work();
  CHECK(calls == 3);
}
