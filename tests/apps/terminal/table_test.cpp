// One declaration of a column, told as text and as JSON.
#include "apps/terminal/table.h"

#include <doctest/doctest.h>

#include <cmath>
#include <optional>

using namespace ricci::apps;

namespace {

struct Row {
  std::string name;
  int64_t bytes;
  double seconds;
  std::optional<double> loss;
};

const std::vector<Row> kRows = {{"one", 1'500'000, 0.25, 2.5}, {"zwölf", 12, INFINITY, {}}};

ResultTable table() {
  ResultTable table;
  table.add({.heading = "run", .key = "run", .left = true}, kRows, &Row::name);
  table.add({.heading = "MB", .key = "bytes", .format = "{:.1f}", .factor = 1e-6}, kRows, &Row::bytes);
  table.add({.heading = "bytes", .format = ","}, kRows, &Row::bytes);
  table.add({.heading = "memory", .format = "bytes"}, kRows, &Row::bytes);
  table.add({.key = "time.seconds"}, kRows, &Row::seconds);
  table.add({.heading = "ms", .key = "time.ms", .format = "{:g}"}, kRows, [](const Row& row) { return row.seconds * 1e3; });
  table.add({.heading = "loss", .key = "loss", .format = "{:.2f}"}, kRows, &Row::loss);
  table.add(
      {.heading = "best", .key = "best", .missing = ""}, kRows, [](const Row& row) { return row.loss ? Value(true) : Value(nullptr); });
  return table;
}

}  // namespace

TEST_CASE("table: text has the columns with a heading, as wide as their widest cell") {
  CHECK(text_of(table()) == "run     MB      bytes    memory   ms  loss  best\n"
                            "one    1.5  1,500,000   1.4 MiB  250  2.50     1\n"
                            "zwölf  0.0         12  12 bytes  inf     -");
  CHECK(cells_of(table())[2] == Cells{"zwölf", "0.0", "12", "12 bytes", "inf", "-", ""});
}

TEST_CASE("table: JSON has the columns with a key, unscaled; nothing is left out, what is not known is null") {
  CHECK(json_text(json_of(table()), -1) == R"([{"run":"one","bytes":1500000,"time":{"seconds":0.25,"ms":250.0},"loss":2.5,"best":true},)"
                                           R"({"run":"zwölf","bytes":12,"time":{"seconds":null,"ms":null},"best":null}])");
  CHECK(json_text(json_of(ResultTable())) == "[]");
}

TEST_CASE("table: values of JSON") {
  const Value value =
      Object{{"b", Value::List{1, "two", 3.5, nullptr}}, {"a", std::vector<int64_t>{}}, {"seed", UINT64_MAX}, {"bad", "\xff"}};
  CHECK(json_text(value, -1) == "{\"b\":[1,\"two\",3.5,null],\"a\":[],\"seed\":18446744073709551615,\"bad\":\"\xef\xbf\xbd\"}");
  CHECK(json_text(Object{{"a", 1}}) == "{\n \"a\": 1\n}");
  CHECK(json_text(Object{{"a", std::optional<double>()}, {"b", nullptr}}, -1) == R"({"b":null})");  // nothing, and not known
  CHECK(Value(2).number() == 2);
  CHECK(std::isnan(Value("2").number()));
  CHECK(Value().is_missing());
}
