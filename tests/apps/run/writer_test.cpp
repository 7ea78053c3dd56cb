// Escapes of prompts, and texts that end before a stop string, for any division into parts.
#include "apps/run/writer.h"

#include <doctest/doctest.h>

#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

struct Shown {
  std::string at_once, text;
  bool met;
};

// The text in parts of `bytes` bytes. at_once: the text shown before the end.
Shown shown(const std::vector<std::string>& stops, const std::string& text, size_t bytes) {
  StopStrings strings(stops);
  Shown result{};
  for (size_t at = 0; at < text.size(); at += bytes) result.at_once += strings.next(text.substr(at, bytes));
  result.text = result.at_once + strings.end();
  result.met = strings.found();
  return result;
}

}  // namespace

TEST_CASE("escapes: each stands for its character, and other text for itself") {
  const auto meant = [](const char* text) { return unescape(text, "--prompt"); };
  CHECK(meant("to be \xc3\xa9 'or' \"not\"") == "to be \xc3\xa9 'or' \"not\"");
  CHECK(meant(R"(a\nb\tc\\d\"e)") == "a\nb\tc\\d\"e");
  CHECK(meant(R"(\\n)") == "\\n");
  CHECK(error_of([&] { meant(R"(ab\q)"); }) == R"(--prompt: unknown escape '\q' at byte 2; write \\ for a backslash)");
  CHECK(error_of([&] { meant("ab\\"); }) == R"(--prompt: unknown escape '\' at byte 2; write \\ for a backslash)");
}

TEST_CASE("stop strings: the text ends in front of the first") {
  for (size_t bytes = 1; bytes < 12; ++bytes) {
    CAPTURE(bytes);
    CHECK(shown({"END"}, "to ENEND it ENDs", bytes).text == "to EN");
    CHECK(shown({"END"}, "to ENEND it ENDs", bytes).met);
    CHECK(shown({"xyz", "or", "not"}, "to be or not", bytes).text == "to be ");
    CHECK(shown({"aab"}, "aaaab", bytes).text == "aa");
    CHECK(shown({"bcd", "abcde"}, "abcde", bytes).text == "a");
    CHECK(shown({"\n"}, "\nrest", bytes).text == "");
  }
}

TEST_CASE("stop strings: what is none is shown, and only what may become one is held back") {
  for (size_t bytes = 1; bytes < 12; ++bytes) {
    CAPTURE(bytes);
    const Shown all = shown({"END", "be\n"}, "to be EN", bytes);
    CHECK(all.at_once == "to be ");
    CHECK(all.text == "to be EN");
    CHECK_FALSE(all.met);
    CHECK(shown({}, "to be", bytes).at_once == "to be");
  }
}

TEST_CASE("stop strings: nothing comes behind one; an empty one is an error") {
  StopStrings strings({"."});
  CHECK(strings.next("a.b") == "a");
  CHECK(strings.next("c") == "");
  CHECK(strings.end() == "");
  CHECK(error_of([] { StopStrings({"a", ""}); }) == "stop string: is empty");
}
