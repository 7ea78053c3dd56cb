// All tests are one program. ctest runs it once per test file, and once per requirement that not every machine has.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "tests/skip.h"

namespace {

unsigned chosen = 0;  // test cases that the options chose

struct Counter final : doctest::IReporter {
  explicit Counter(const doctest::ContextOptions&) {}
  void test_run_end(const doctest::TestRunStats& stats) override { chosen = stats.numTestCasesPassingFilters; }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("counter", 0, Counter);

}  // namespace
#ifdef __SANITIZE_ADDRESS__
// Freed memory that AddressSanitizer holds back, in MB: less than kSanitizerBytes of tests/data/files.h, so tests can measure the memory of
// a program.
extern "C" const char* __asan_default_options() { return "quarantine_size_mb=24"; }
#endif

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int failed = context.run();
  if (context.shouldExit() || failed) return failed;
  if (chosen == 0) return std::puts("no test has been chosen"), 1;
  return test::skipped == static_cast<int>(chosen) ? test::kAllSkipped : 0;
}
