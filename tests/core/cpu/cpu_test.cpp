// Threads and processors: loops that share their work, values made ahead, vectors of every width, and container limits.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/cpu/available.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/cpu/prefetch.h"
#include "core/error.h"
#include "tests/data/files.h"
#include "tests/sanitized.h"
#include "tests/skip.h"

using namespace ricci;
using namespace test_data;

namespace {

// Waits until every other thread of this process sleeps.
void wait_until_others_sleep() {
  const auto is_awake = [](const std::filesystem::path& thread) {
    const std::string status = read_file(thread / "stat");
    const size_t state = status.rfind(')') + 2;
    return thread.filename() != std::to_string(::gettid()) && state < status.size() && status[state] == 'R';
  };
  const auto any_is_awake = [&] {
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return std::any_of(begin(threads), end(threads), is_awake);
  };
  while (any_is_awake()) std::this_thread::yield();
}

// The number of times that one call visited each index.
std::vector<int> visits(int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> counts(static_cast<size_t>(n));
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
  });
  return {counts.begin(), counts.end()};
}

struct Square {
  const float* x;
  float* y;
  void operator()(int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) y[i] = x[i] * x[i];
  }
};

// `run` squares elements 1 to 100 of 103.
void check_squares(void (*run)(Square, int64_t, int64_t)) {
  std::vector<float> x, y(103, -1);
  for (int i = 0; i < 103; ++i) x.push_back(static_cast<float>(i));
  run(Square{x.data(), y.data()}, 1, 101);
  for (int i = 0; i < 103; ++i) CHECK(y[static_cast<size_t>(i)] == static_cast<float>(i < 1 || i > 100 ? -1 : i * i));
}

// Sets the affinity mask of this thread to one processor of it.
class OneProcessor {
 public:
  OneProcessor() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
      if (CPU_ISSET(i, &before_)) CPU_SET(i, &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

int quota_of(const ScratchFolder& folder, const std::string& list) {
  folder.write("list", list);
  return quota_of_processors(folder / "list", folder.path());
}

int64_t memory_of(const ScratchFolder& folder, const std::string& list) {
  folder.write("list", list);
  return limit_of_memory(folder / "list", folder.path());
}

}  // namespace

TEST_CASE("the caller gets the first error in order for any number of threads, and the chunks before it have run") {
  for (const int threads : {1, 2, 7}) {
    const Threads count(threads);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::atomic<int>> ran(1000);
      std::string error;
      try {
        parallel_for(1000, 8, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            ++ran[static_cast<size_t>(i)];
            if (i >= 413 && i % 50 == 13) fail("{}", {i});
          }
        });
      } catch (const Error& first) {
        error = first.what();
      }
      CHECK(error == "413");
      CHECK(visits(50, 1) == std::vector<int>(50, 1));  // the next call works
      for (size_t i = 0; i < 413; ++i) CHECK(ran[i] == 1);
    }
  }
}

TEST_CASE("every index is visited once, for any number of threads and any grain") {
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
    if (call % 1000 == 0) wait_until_others_sleep();
  }
  int64_t expected = 0;
  for (int call = 0; call < 3000; ++call) expected += (call % 9) * (call % 9 - 1) / 2;
  CHECK(total == expected);
}

TEST_CASE("calls within a call, and from many threads at once") {
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

TEST_CASE("parallel: cancelled work stops at its next parallel_for") {
  static bool unwanted = false;
  unwanted = false;
  int calls = 0;
  const auto work = [&] { parallel_for(10, 10, [&](int64_t, int64_t) { ++calls; }); };
  const auto stop = [] { return unwanted; };
  CHECK(finish_unless(stop, work));
  unwanted = true;
  CHECK_FALSE(finish_unless(stop, work));
  CHECK_FALSE(finish_unless(stop, [] { check_stop(); }));
  CHECK_FALSE(finish_unless(stop, [&] {
    CHECK(finish_unless(nullptr, work));
    work();
  }));
  work();
  CHECK(calls == 3);
}

TEST_CASE("values come in their order, then an error, and then nothing") {
  for (const bool fails : {false, true}) {
    int made = 0;
    Prefetch<int> values([&]() -> std::optional<int> {
      if (made == 1000 && fails) fail("value {}", {made});
      return made < 1000 ? std::optional(made++) : std::nullopt;
    });
    for (int i = 0; i < 1000; ++i) CHECK(values.next() == i);
    if (fails) CHECK_THROWS_WITH_AS(values.next(), "value 1000", Error);
    for (int i = 0; i < 2; ++i) CHECK(values.next() == std::nullopt);
  }
}

TEST_CASE("two values are made before they are asked for, and no more") {
  constexpr int kAhead = Prefetch<int>::kAhead;
  std::atomic<int> made = 0, asked = 0, most = 0;
  Prefetch<int> values([&]() -> std::optional<int> {
    most = std::max<int>(most, made + 1 - asked);
    return made++;
  });
  for (int i = 0; i < 300; ++i) {
    while (made < i + kAhead) std::this_thread::yield();
    ++asked;
    CHECK(values.next() == i);
  }
  CHECK(most == kAhead);
}

TEST_CASE("a loop covers its range, and nothing else") {
  check_squares(run_baseline<Square>);
  check_squares([](Square f, int64_t begin, int64_t end) { run_vectorized(f, begin, end); });
}

TEST_CASE("the widest loops run here" * doctest::test_suite("needs AVX-512")) {
  if (cpu_isa() < Isa::avx512) return test::skip(std::string("needs AVX-512, the widest here is ") + name_of(cpu_isa()));
#if defined(__x86_64__)
  check_squares(run_avx2<Square>);
  check_squares(run_avx512<Square>);
#endif
}

TEST_CASE("available processors: those of the affinity mask") {
  const int all = available_processors();
  CHECK(all >= 1);
  CHECK(all <= static_cast<int>(std::thread::hardware_concurrency()));
  const OneProcessor one;
  CHECK(available_processors() == 1);
}

TEST_CASE("available processors: the quota of control groups") {
  const ScratchFolder folder;
  CHECK(quota_of_processors(folder / "none", folder.path()) == 0);
  CHECK(quota_of(folder, "0::/a/b\n") == 0);
  folder.write("a/b/cpu.max", "max 100000\n");
  CHECK(quota_of(folder, "0::/a/b\n") == 0);
  folder.write("a/b/cpu.max", "350000 100000\n");
  CHECK(quota_of(folder, "0::/a/b\n") == 4);
  folder.write("a/cpu.max", "150000 100000\n");
  CHECK(quota_of(folder, "0::/a/b\n") == 2);
  CHECK(quota_of(folder, "0::/a\n") == 2);
  CHECK(quota_of(folder, "0::/\n") == 0);
  folder.write("cpu.max", "20000 100000\n");  // a container, with a list that may name a folder of its host
  CHECK(quota_of(folder, "0::/\n") == 1);
  CHECK(quota_of(folder, "0::/host/pod\n") == 1);
  folder.write("cpu.max", "nothing\n");
  CHECK(quota_of(folder, "0::/\n") == 0);
}

TEST_CASE("available memory: the limit of control groups and of those around them") {
  const ScratchFolder folder;
  CHECK(memory_of(folder, "0::/a/b\n") == 0);
  folder.write("a/b/memory.max", "max\n");
  CHECK(memory_of(folder, "0::/a/b\n") == 0);
  folder.write("a/memory.max", "4294967296\n");
  CHECK(memory_of(folder, "0::/a/b\n") == int64_t{4} << 30);
  folder.write("a/b/memory.max", "1073741824\n");
  CHECK(memory_of(folder, "0::/a/b\n") == int64_t{1} << 30);
  folder.write("memory.max", "536870912\n");
  CHECK(memory_of(folder, "0::/host/pod\n") == 512 << 20);
}

TEST_CASE("available memory: ulimit -v" * doctest::test_suite("needs ulimit")) {
  rlimit before, now;
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  const int64_t all = available_memory();
  const rlimit less{static_cast<rlim_t>(all) - (1 << 20), before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_AS, &less) == 0);
  ::getrlimit(RLIMIT_AS, &now);
  const int64_t limited = available_memory();
  ::setrlimit(RLIMIT_AS, &before);  // AddressSanitizer maps memory for the checks
  if (now.rlim_cur != less.rlim_cur) return test::skip("needs ulimit -v, which qemu does not emulate");
  CHECK(limited < all - (1 << 20));
  if (test::kSanitized) return;  // a sanitizer uses more addresses than the limit, so none are left
  CHECK(limited > all / 2);
}
