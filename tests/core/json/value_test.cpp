// JSON values from texts that others wrote.
#include "core/json/value.h"

#include <doctest/doctest.h>

#include "tests/bounded.h"

using namespace ricci;

TEST_CASE("json: members in their order, numbers, escapes") {
  const JsonValue value = parse_json(R"({"b":[1,-2,2.5,null,true],"a":"\u00e9\ud83d\ude00","a":"last"})", "test");
  CHECK(value["a"].text() == "last");
  CHECK(value["b"].items()[1].integer() == -2);
  CHECK(value["b"].items()[1].number() == -2);
  CHECK(value["b"].items()[2].number() == 2.5);
  CHECK_FALSE(value["b"].items()[2].is_integer());
  CHECK(value["b"].items()[4].boolean());
  CHECK(value["none"].is_null());
  CHECK(value.to_json() == R"({"b":[1,-2,2.5,null,true],"a":"é😀","a":"last"})");
  CHECK(quoted_json("é\n\"\u2028", true) == R"("\u00e9\n\"\u2028")");
  CHECK(test::bounded_error([] { parse_json("\"\\ud800\"", "test"); }).starts_with("test: not JSON: fault at byte"));
  CHECK(test::bounded_error([] { parse_json({"{}\0x", 4}, "test"); }) == "test: not JSON: fault at byte 3 of 4");
}

TEST_CASE("json: members of a type, and an error that names another one") {
  const JsonValue value = parse_json(R"({"n":3,"x":2.5,"b":true,"t":"a","l":["a","b"],"o":{"k":"v"},"none":null,"mixed":["a",1]})", "test");
  CHECK(value.member<int64_t>("n", "", "") == 3);
  CHECK(value.member<double>("n", "", "") == 3.0);
  CHECK(value.member<double>("x", "", "") == 2.5);
  CHECK(value.member<bool>("b", "", "") == true);
  CHECK(value.member<std::string>("t", "", "") == "a");
  CHECK(value.member<std::vector<std::string>>("l", "", "") == std::vector<std::string>{"a", "b"});
  CHECK(value.member<std::map<std::string, std::string>>("o", "", "") == std::map<std::string, std::string>{{"k", "v"}});
  for (const char* key : {"none", "missing"}) CHECK(!value.member<int64_t>(key, "", "").has_value());
  const auto error = [&](const auto& read) { return test::bounded_error(read); };
  CHECK(error([&] { value.member<int64_t>("x", "a.json: ", ": expected "); }) == "a.json: x: expected an integer");
  CHECK(error([&] { value.member<bool>("n", "'", "' is not "); }) == "'n' is not true or false");
  CHECK(error([&] { value.member<std::string>("n", "", ": "); }) == "n: a text");
  CHECK(error([&] { value.member<std::vector<std::string>>("mixed", "", ": "); }) == "mixed: a list of texts");
  CHECK(error([&] { value.member<std::map<std::string, std::string>>("l", "", ": "); }) == "l: names with texts");
}

TEST_CASE("json: what is too large is refused before it is read") {
  const auto fault = [](const char* text, const JsonLimits& limits) {
    return test::bounded_error([&] { parse_json(text, "test", limits); });
  };
  CHECK(fault("[1,2]", {.bytes = 4}) == "test: 5 bytes, at most 4 are read");
  CHECK(fault("[[[1]]]", {.depth = 2}) == "test: the JSON is nested 3 levels deep, at most 2 are read");
  CHECK(fault("[1,2]", {.values = 2}) == "test: more than 2 values");
  CHECK(parse_json("[1,2]", "test", {.bytes = 5, .depth = 1, .values = 3}).items().size() == 2);
}
