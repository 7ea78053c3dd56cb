// Words of a command line that CLI11 takes for others, and messages whatever they hold.
#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <new>

#include "tests/apps/terminal/outcome.h"
#include "tests/bounded.h"

using namespace ricci::apps;
using namespace test_data;

TEST_CASE("cli: memory that ends where no exception may leave is one line and exit code 1, too") {
  const std::function<void()> allocate = [] { throw std::bad_alloc(); };
  const auto destroy = [&]() noexcept { allocate(); };
  std::string outcome;
  const std::string printed = captured(STDERR_FILENO, stderr, [&] { outcome = test::bounded_error(destroy); });
  CHECK(outcome == "exit code 1");
  CHECK(printed == "ricci-tests: out of memory\n");
}

TEST_CASE("cli: --name= gives the option an empty value, and does not take the next word") {
  std::string name = "before";
  std::vector<std::string> files, labels;
  bool fast = false;
  const auto parse = [&](std::vector<const char*> words) {
    const auto setup = [&](CLI::App& app) {
      app.add_option("files", files);
      app.add_flag("--fast", fast);
      CLI::App* const command = app.add_subcommand("make", "");
      command->add_option("--name", name);
      command->add_option("--labels", labels)->delimiter(',')->allow_extra_args(false);
      command->add_option("files", files);
    };
    return run(words, setup, [] { return 0; }).err;
  };
  CHECK(parse({"make", "--name=", "a.txt", "--labels="}) == "");
  CHECK((name.empty() && files == std::vector<std::string>{"a.txt"} && labels == std::vector<std::string>{""}));
  CHECK(parse({"--fast=", "--", "--name=", "b="}) == "");
  CHECK((fast && files == std::vector<std::string>{"--name=", "b="}));
}

TEST_CASE("cli: a message has no control characters, also none of those that UTF-8 writes in two bytes") {
  int64_t tokens = 0;
  const std::string mistake = run(
      {"--tokens=\xc2\x9b"
       "31m\x1b[2J\x7f"},
      [&](CLI::App& app) { app.add_option("--tokens", tokens); },
      [] { return 0; }).err;
  CHECK(contains(mistake, "31m"));
  for (const char* control : {"\xc2\x9b", "\x1b", "\x7f"}) CHECK(!contains(mistake, control));
}
