// JSON texts of others, and JSON for others.
#include "core/json.h"

#include <doctest/doctest.h>

#include "tests/bounded.h"
#include "tests/data/files.h"

using namespace ricci;
using test::bounded_error;

namespace {

std::string fault(std::string_view text, const JsonLimits& limits = {}) {
  return bounded_error([&] { parse_json(text, std::string("test"), limits); });
}

}  // namespace

TEST_CASE("json: members in their order, numbers, escapes") {
  const Json value = parse_json(R"({"b":[1,-2,2.5,null,true],"a":"\u00e9\ud83d\ude00","c":{},"d":[]})", std::string("test"));
  const Json& list = member(value, "b");
  CHECK((as<int64_t>(list[1]) == -2 && as<double>(list[1]) == -2));
  CHECK((as<int64_t>(list[2]) == std::nullopt && as<double>(list[2]) == 2.5));
  CHECK(to_text(value) == R"({"b":[1,-2,2.5,null,true],"a":"é😀","c":{},"d":[]})");
  CHECK(to_text(value, 1, true).starts_with("{\n \"b\": [\n  1,"));
}

TEST_CASE("json: an integer beyond 64 bits is a double") {
  const Json value = parse_json("[9223372036854775807,9223372036854775808,-9223372036854775808,18446744073709551616]", std::string("test"));
  CHECK(as<int64_t>(value[0]) == INT64_MAX);
  CHECK(as<int64_t>(value[1]) == std::nullopt);
  CHECK(as<double>(value[1]) == 0x1p63);
  CHECK(as<int64_t>(value[2]) == INT64_MIN);
  CHECK(as<double>(value[3]) == 0x1p64);
}

TEST_CASE("json: a member of a member, or null") {
  const Json value = parse_json(R"({"model":{"merges":["a b"],"n":null},"list":[1]})", std::string("test"));
  CHECK(member(value, "model", "merges")[0] == "a b");
  for (const char* key : {"n", "none", ""}) CHECK(member(value, "model", key).is_null());
  CHECK(member(value, "none", "merges", "x").is_null());
  CHECK(member(value, "list", "0").is_null());
  CHECK(member(Json(), "x").is_null());
}

TEST_CASE("json: members of a type, and an error that shows another one") {
  const Json value = parse_json(
      R"({"n":3,"x":2.5,"b":true,"t":"a","l":["a","b"],"o":{"k":"v"},"none":null,"mixed":["a",1],"esc":"\u009b1m"})", std::string("test"));
  CHECK(read_member<int64_t>(value, "n", "") == 3);
  CHECK(read_member<double>(value, "n", "") == 3.0);
  CHECK(read_member<double>(value, "x", "") == 2.5);
  CHECK(read_member<bool>(value, "b", "") == true);
  CHECK(read_member<std::string>(value, "t", "") == "a");
  CHECK(read_member<std::vector<std::string>>(value, "l", "") == std::vector<std::string>{"a", "b"});
  CHECK(read_member<std::map<std::string, std::string>>(value, "o", "") == std::map<std::string, std::string>{{"k", "v"}});
  for (const char* key : {"none", "missing"}) CHECK(!read_member<int64_t>(value, key, "").has_value());
  const auto error = [&]<class T>(const char* key, T) { return bounded_error([&] { read_member<T>(value, key, "a.json"); }); };
  CHECK(error("x", int64_t()) == "a.json: x: 2.5, expected an integer");
  CHECK(error("t", double()) == "a.json: t: \"a\", expected a number");
  CHECK(error("n", bool()) == "a.json: n: 3, expected true or false");
  CHECK(error("n", std::string()) == "a.json: n: 3, expected a string");
  CHECK(error("mixed", std::vector<std::string>()) == "a.json: mixed: [\"a\",1], expected a list of strings");
  CHECK(error("l", std::map<std::string, std::string>()) == "a.json: l: [\"a\",\"b\"], expected an object with string members");
  CHECK(error("esc", int64_t()) == "a.json: esc: \"\\u009b1m\", expected an integer");
}

TEST_CASE("json: a text beyond its limits is refused") {
  CHECK(fault("[1,2]", {.bytes = 4}) == "test: has 5 bytes, expected at most 4");
  CHECK(fault("[[[1]]]", {.depth = 2}) == "test: the JSON is nested more than 2 levels deep");
  CHECK(fault("[1,2]", {.values = 2}) == "test: more than 2 values");
  CHECK(fault(std::string(60 << 20, '[')) == "test: the JSON is nested more than 16 levels deep");
  CHECK(fault(R"({"a":"[[[[","b":{}})", {.bytes = 19, .depth = 2, .values = 3}) == "no error");
}

TEST_CASE("json: a key twice in an object is refused, because readers would disagree about its value") {
  CHECK(fault(R"({"a":1,"b":2,"a":3})") == "test: duplicate key \"a\" in one object");
  CHECK(fault(R"([{"x":{"\u009b":1,"\u009b":1}}])") == "test: duplicate key \"\\u009b\" in one object");
  CHECK(fault(R"([{"a":1},{"a":{"a":2}}])") == "no error");
}

TEST_CASE("json: faults name their byte, and the words of Python") {
  CHECK(fault("{\"a\":1") == "test: invalid JSON at byte 7 of 6");
  CHECK(fault("") == "test: invalid JSON at byte 1 of 0");
  CHECK(fault("[1] 2") == "test: invalid JSON at byte 5 of 5");
  CHECK(fault("[NaN]") == "test: invalid JSON at byte 2 of 5; JSON has no NaN");
  CHECK(fault("[True]") == "test: invalid JSON at byte 2 of 6; JSON has no True");
  CHECK(fault({"{}\0x", 4}) == "test: invalid JSON at byte 3 of 4");
  for (const char* text : {"\"\\ud800\"", "\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\n\"", "[1,]", "1e999"})
    CHECK(fault(text).starts_with("test: invalid JSON at byte"));
}

TEST_CASE("json: a vocabulary of 150,000 keys is read at once") {
  std::string text = "{\"vocab\":{";
  for (int i = 0; i < 150'000; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i * 7919 % 150'000) + "\":" + std::to_string(i);
  text += "}}";
  const auto read = [&] {
    const Json value = parse_json(text, std::string("test"));
    fail("{} members", {member(value, "vocab").size()});
  };
  CHECK(bounded_error(read, {.seconds = 1, .mebibytes = 64}) == "150000 members");
}

TEST_CASE("json: a file is one object, of a bounded size") {
  const test_data::ScratchFolder folder;
  CHECK(member(read_json(folder.write("a.json", "{\"a\":1}")), "a") == 1);
  const auto error = [&](const std::string& text) {
    const std::string path = folder.write("b.json", text), found = bounded_error([&] { read_json(path); });
    return found.starts_with(path + ": ") ? found.substr(path.size() + 2) : found;
  };
  CHECK(error("[1]") == "expected a JSON object");
  CHECK(error("{") == "invalid JSON at byte 2 of 1");
  CHECK(error(std::string(17 << 20, ' ')) == "cannot read " + folder / "b.json" + ": it has more than 16777216 bytes");
}

TEST_CASE("json: written text is safe to print and to read") {
  CHECK(to_text("é\n\"\\\u2028", -1, true) == R"("\u00e9\n\"\\\u2028")");
  CHECK(quoted_json("é\u00a0\u2028") == "\"é\u00a0\u2028\"");
  CHECK(quoted_json(std::string("\x1b[1m\u009b1m\x7f\0", 9)) == R"("\u001b[1m\u009b1m\u007f")");
  CHECK(quoted_json("a\xff"
                    "b\xc2") == "\"a\ufffdb\ufffd\"");
  CHECK(to_text("a\xff", -1, true) == R"("a\ufffd")");
  CHECK(to_text(Json{{"k\u0080", "\u009f"}}) == R"({"k\u0080":"\u009f"})");
}
