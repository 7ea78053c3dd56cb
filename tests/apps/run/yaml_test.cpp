// YAML texts: their values, their errors, and time and memory in proportion to their length for any content.
#include <doctest/doctest.h>
#include <yaml-cpp/yaml.h>

#include "apps/run/config.h"
#include "core/error.h"
#include "tests/bounded.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

// The tree on one line.
std::string shown(const YAML::Node& value) {
  std::string all;
  if (value.IsScalar()) return "'" + value.Scalar() + "'";
  if (value.IsNull()) return "nothing";
  for (const auto& item : value)
    all += (all.empty() ? "" : ", ") + (value.IsMap() ? shown(item.first) + ": " + shown(item.second) : shown(item));
  return value.IsMap() ? "{" + all + "}" : "[" + all + "]";
}

std::string tree(const std::string& text) { return shown(parse_yaml(text, "x.yaml", true)); }
std::string complaint(const std::string& text, bool has_lines = true) {
  return test::bounded_error([&] { parse_yaml(text, "x.yaml", has_lines); }, {.mebibytes = 64});
}

std::string repeated(const std::string& unit, size_t bytes) {
  std::string all;
  while (all.size() + unit.size() <= bytes) all += unit;
  return all;
}

}  // namespace

TEST_CASE("yaml: a text as a tree") {
  CHECK(tree("") == "nothing");
  CHECK(tree("# a comment") == "nothing");
  CHECK(tree("---\n") == "nothing");
  CHECK(tree("a: 1\nb: [x, 'y z', \"\\n\", null, ~, [], {}]\nc:\n  - {d: e}\n  - f:\n") ==
        "{'a': '1', 'b': ['x', 'y z', '\n', nothing, nothing, [], {}], 'c': [{'d': 'e'}, {'f': nothing}]}");
  const YAML::Node lines = parse_yaml("a: 1\n\nb:\n  c: 2\n", "x.yaml", true);
  CHECK(lines["a"].Mark().line == 0);
  CHECK(lines["b"]["c"].Mark().line == 3);
}

TEST_CASE("yaml: what follows the document is an error, and not read for ever") {
  for (const char* text : {",", ",x.txt", ", ,", "{name: x}, {b: c}", "[a], [b]"}) {
    CAPTURE(text);
    CHECK(complaint(text) == "x.yaml:1: not YAML: unexpected ','; text that starts with it needs quotes");
    CHECK(complaint(text, false) == "x.yaml: not YAML: unexpected ','; text that starts with it needs quotes");
  }
  CHECK(complaint("a\n---\nb\n---\nc") == "x.yaml: expected one YAML document, got more");
  CHECK(complaint("]").find("not YAML") != std::string::npos);
  CHECK(complaint("}").find("not YAML") != std::string::npos);
  CHECK(complaint("[a]]").find("not YAML") != std::string::npos);
}

TEST_CASE("yaml: deep nesting is told as such") {
  const std::string deep = ": lists and mappings are nested more than 32 deep";
  CHECK(complaint(repeated("[", 32) + repeated("]", 32)) == "no error");
  CHECK(complaint(repeated("[", 33) + repeated("]", 33)) == "x.yaml:1" + deep);
  for (const char* unit : {"[", "{", "{a: ", "- ", "? ", "[{a: "}) {
    CAPTURE(unit);
    CHECK(complaint(repeated(unit, 100'000)) == "x.yaml:1" + deep);
  }
  std::string staircase;
  for (int i = 0; i < 40; ++i) staircase += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  CHECK(complaint(staircase) == "x.yaml:33" + deep);
}

TEST_CASE("yaml: long texts, many values and aliases") {
  CHECK(complaint(std::string(kMaxYaml + 1, ' ')) == "x.yaml: has 262145 bytes, expected at most 262144");
  CHECK(complaint("[" + repeated("a,", 250'000) + "]") == "no error");
  CHECK(complaint("a: &a [1]\nb: *a") == "x.yaml:2: aliases are not supported; base: FILE shares keys");
  CHECK(complaint("a: *b").find("not YAML") != std::string::npos);
}

TEST_CASE("yaml: whatever is repeated, it takes time and memory in proportion to its length") {
  const char* const units[] = {"[", "]", "{", "}", ",", ":", ": ", "- ", "-", "? ", "a", "a: ", "&a ", "*a ", "!", "!a ", "!<a> ", "|", ">",
      "|\n", "'", "\"", "\\", "%", "%TAG", "@", "#", " #", "\n", "\n ", " ", "\t", "---\n", "...\n", "~", "\r", "\xef\xbb\xbf", "\xff\xfe",
      "\x80", "a\n b\n", "? a\n: b\n", "{\\", "{'", "[:", ":'"};
  // One process tries all starts of a unit.
  for (const char* unit : units) {
    CAPTURE(unit);
    const auto try_starts = [&] {
      for (const char* start : {"", "a: {b: ["}) {
        std::string found;
        try {
          parse_yaml(start + repeated(unit, 100'000), "x.yaml", true);
        } catch (const Error& error) {
          found = error.what();
        }
        if (found.size() >= 200 || !(found.empty() || found.starts_with("x.yaml"))) fail("{}: {}", {start, found});
      }
    };
    CHECK(test::bounded_error(try_starts, {.mebibytes = 64}) == "no error");
  }
}
