// The command line by exit codes and by the texts on stdout and stderr, words that CLI11 takes for others, and messages whatever they hold.
// One declaration of a column, printed as text and as JSON.
#include "apps/terminal/cli.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>

#include "apps/run/options.h"
#include "apps/run/train_config.h"
#include "apps/terminal/table.h"
#include "core/error.h"
#include "tests/data/files.h"

using namespace ricci::apps;
using namespace test_data;

namespace {

// Everything that goes to a descriptor while f runs.
template <class F> std::string captured(int descriptor, std::FILE* stream, const F& f) {
  const ScratchFolder folder;
  const std::string path = folder.write("out", "");
  std::fflush(stream);
  const int old = ::dup(descriptor);
  std::FILE* file = std::fopen(path.c_str(), "w");
  ::dup2(::fileno(file), descriptor);
  f();
  std::fflush(stream);
  ::dup2(old, descriptor);
  ::close(old);
  std::fclose(file);
  return read_file(path);
}

struct Outcome {
  int code = -1;
  std::string out, err;
};

Outcome run(std::vector<const char*> words, const std::function<void(CLI::App&)>& setup, const std::function<int()>& main) {
  words.insert(words.begin(), "build/ricci-train");
  Outcome outcome;
  outcome.err = captured(STDERR_FILENO, stderr, [&] {
    outcome.out = captured(STDOUT_FILENO, stdout, [&] {
      outcome.code = run_app(static_cast<int>(words.size()), words.data(), {"ricci-train", "Trains a language model."}, setup, main);
    });
  });
  return outcome;
}

using Words = std::vector<std::string>;
const auto no_options = [](CLI::App&) {};

struct Members {
  bool fast = false;
  std::optional<int64_t> top;
  std::string name;
  std::vector<int64_t> sizes = {1, 2}, layers;
};
void visit_fields(Members& m, const ricci::Fields& field) {
  field("fast", m.fast, "a flag");
  field("top", m.top, "a number that may be missing").at_least(1);
  field("name", m.name, "a text");
  field("sizes", m.sizes, "a list with a default").at_least(1);
  field("layers", m.layers, "a list without").at_least(0);
}

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

TEST_CASE("cli: the exit code is that of the program; exceptions are one line and exit code 1") {
  const Outcome outcome = run({}, no_options, [] { return 7; });
  CHECK(outcome.code == 7);
  CHECK((outcome.out + outcome.err).empty());
  const auto thrown = [](const auto& exception) { return run({}, no_options, [&]() -> int { throw exception; }); };
  const Outcome own = thrown(ricci::Error("matmul: index k is 3 but 4"));
  CHECK(own.code == 1);
  CHECK(own.err == "ricci-train: matmul: index k is 3 but 4\n");
  CHECK(own.out.empty());
  CHECK(thrown(std::runtime_error("two\nlines")).err == "ricci-train: two lines\n");
  CHECK(thrown(std::bad_alloc()).err == "ricci-train: out of memory\n");
  CHECK(thrown(std::bad_alloc()).code == 1);
}

TEST_CASE("cli: help and version go to stdout, and the program does not run") {
  for (const char* flag : {"--help", "-h", "--version"}) {
    const Outcome outcome = run({flag}, no_options, []() -> int { throw std::runtime_error("ran"); });
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    if (std::string(flag) == "--version") CHECK(outcome.out.starts_with("ricci-train 0.1.0\ncommit   "));
    if (std::string(flag) != "--version") CHECK(contains(outcome.out, "Trains a language model.\nUsage: ricci-train [OPTIONS]"));
  }
}

TEST_CASE("cli: output that cannot be written is one line and exit code 1, for help too") {
  const auto to_full_disk = [](std::vector<const char*> words, int code) {
    words.insert(words.begin(), "build/ricci-train");
    const int full = ::open("/dev/full", O_WRONLY), old = ::dup(STDOUT_FILENO);
    REQUIRE(full >= 0);
    Outcome outcome;
    std::fflush(stdout);
    outcome.err = captured(STDERR_FILENO, stderr, [&] {
      ::dup2(full, STDOUT_FILENO);
      outcome.code = run_app(static_cast<int>(words.size()), words.data(), {"ricci-train", "Trains a language model."}, no_options, [&] {
        std::puts("the result");
        return code;
      });
      std::clearerr(stdout);
      ::dup2(old, STDOUT_FILENO);
    });
    ::close(old);
    ::close(full);
    return outcome;
  };
  const Outcome result = to_full_disk({}, 0);
  CHECK(result.code == 1);
  CHECK(result.err == "ricci-train: cannot write to stdout: No space left on device\n");
  CHECK(to_full_disk({"--help"}, 0).code == 1);
  CHECK(to_full_disk({}, 7).code == 7);
}

TEST_CASE("cli: mistakes in the usage are one line and exit code 2") {
  int64_t tokens = 0;
  const auto setup = [&](CLI::App& app) { app.add_option("--tokens", tokens)->required(); };
  const auto mistake = [&](std::vector<const char*> words) {
    const Outcome outcome = run(words, setup, []() -> int { throw std::runtime_error("ran"); });
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK(mistake({}) == "ricci-train: --tokens is required (--help lists the options)\n");
  CHECK(mistake({"--tokens", "x"}) == "ricci-train: Could not convert: --tokens = x (--help lists the options)\n");
  CHECK(
      mistake({"--tokens", "3", "--tokenz"}) == "ricci-train: no option --tokenz, the nearest is '--tokens' (--help lists the options)\n");
  CHECK(mistake({"--tokens", "3", "--max-tokens", "5"}) ==
        "ricci-train: no option --max-tokens, the nearest is '--tokens' (--help lists the options)\n");
  CHECK(mistake({"--tokens", "3", "--frob"}) == "ricci-train: no option --frob (--help lists the options)\n");
  CHECK(mistake({"--tokens", "3", "a", "b"}) == "ricci-train: not expected: 'a' (--help lists the options)\n");
}

TEST_CASE("cli: options for the members of a struct") {
  const auto parse = [](std::vector<const char*> words) {
    ricci::Sampling sampling;
    const Outcome outcome = run(
        words, [&](CLI::App& app) { add_field_options(app, sampling); }, [] { return 0; });
    return outcome.code == 0
               ? ricci::format_message("{} {} {} {}", {sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed}) + outcome.out
               : outcome.err;
  };
  CHECK(parse({}) == "1 0 1 1");
  CHECK(parse({"--temperature", "0.5", "--top-k", "3", "--top-p", "0.9", "--seed", "18446744073709551615"}) ==
        "0.5 3 0.9 18446744073709551615");
  CHECK(parse({"--seed", "-1"}).starts_with("ricci-train: --seed: expected an integer of 0 or more, got -1"));
  for (const char* number : {"010", "0x10", "-01", "00", "1e3", ""})  // CLI11 would read some of them as other numbers
    CHECK(parse({"--top-k", number}).starts_with(std::string("ricci-train: --top-k: expected an integer, got ") + number));
  CHECK(parse({"--top-k", "-1", "--seed", "0"}) == "1 -1 1 0");
  CHECK(parse({"--seed", "010"}).starts_with("ricci-train: --seed: expected an integer of 0 or more, got 010"));
  CHECK(parse({"--top_k", "3"}).starts_with("ricci-train: no option --top_k, the nearest is '--top-k'"));
  const std::string help = parse({"--help"});
  for (const char* text :
      {"--temperature FLOAT=1 ", "--top-k INT=0 ", "Draw from the k most probable tokens; 0: from all", "--seed UINT=1 "})
    CHECK(contains(help, text));
}

TEST_CASE("cli: flags, lists and numbers that may be missing as members of a struct") {
  const auto parse = [](std::vector<const char*> words) {
    Members members;
    const Outcome outcome = run(
        words, [&](CLI::App& app) { add_field_options(app, members); }, [] { return 0; });
    if (outcome.code != 0) return outcome.err;
    return ricci::format_message("{} {} '{}' {} {}",
               {members.fast ? "fast" : "slow", members.top.value_or(0), members.name, members.sizes.back(), members.layers.size()}) +
           outcome.out;
  };
  CHECK(parse({}) == "slow 0 '' 2 0");
  CHECK(parse({"--fast", "--top", "3", "--name", "a b", "--sizes", "4,5", "--layers", "0,2"}) == "fast 3 'a b' 5 2");
  CHECK(parse({"--top", "0"}).starts_with("ricci-train: --top: expected an integer of at least 1, got 0"));
  CHECK(parse({"--sizes", "4,0"}).starts_with("ricci-train: --sizes: expected an integer of at least 1, got 0"));
  CHECK(parse({"--layers", "-1"}).starts_with("ricci-train: --layers: expected an integer of 0 or more, got -1"));
  const std::string help = parse({"--help"});
  for (const char* text : {"--fast ", "--top INT ", "--name TEXT ", "--sizes INT=[1,2] ...", "--layers INT ..."})
    CHECK(contains(help, text));
}

TEST_CASE("cli: a run file and overrides, in any order") {
  const auto parse = [](std::vector<const char*> words) {
    RunOptions options;
    std::string all = "not run";
    const Outcome outcome = run(
        words, [&](CLI::App& app) { add_run_options<TrainConfig>(app, options); },
        [&] {
          all = options.file() + ":";
          for (const std::string& each : options.overrides) all += " <" + each + ">";
          return 0;
        });
    return outcome.code == 0 ? all : outcome.err;
  };
  CHECK(parse({}) == ":");
  CHECK(parse({"run.yaml"}) == "run.yaml:");
  CHECK(parse({"model.layers=6", "lr=-1"}) == ": <model.layers=6> <lr=-1>");
  CHECK(parse({"model.layers=6", "run.yaml", "data=[a, b]"}) == "run.yaml: <model.layers=6> <data=[a, b]>");
  CHECK(parse({"name=", "sample.prompt=\"a b\""}) == ": <name=> <sample.prompt=\"a b\">");
  CHECK(parse({"~lr", "~/run.yaml", "~model.heads"}) == "~/run.yaml: <~lr> <~model.heads>");
  CHECK(parse({"~lr=a/b", "~a/lr=3"}) == "~a/lr=3: <~lr=a/b>");
  CHECK(parse({"--lr=1", "--lr=2", "--model.layers=2", "model.d=8"}) == ": <lr=1> <lr=2> <model.layers=2> <model.d=8>");
  CHECK(parse({""}) == "ricci-train: the name of a run file is empty (--help lists the options)\n");
  CHECK(parse({"a.yaml", "b.yaml"}) == "ricci-train: two run files: a.yaml and b.yaml (--help lists the options)\n");
  CHECK(parse({"--lr"}).find("--lr; keys of a run file are given as lr=VALUE (--help") != std::string::npos);
  CHECK(parse({"--~lr"}).find("--~lr; keys of a run file are given as ~lr (--help") != std::string::npos);
  // Words with dashes and words without keep their order, because the last one of a key counts.
  CHECK(parse({"--model.layers=1", "model.layers=2"}) == ": <model.layers=1> <model.layers=2>");
  CHECK(parse({"model.layers=2", "run.yaml", "--model.layers=1"}) == "run.yaml: <model.layers=2> <model.layers=1>");
  CHECK(parse({"~model", "--data=[a,b]", "data=[c]"}) == ": <~model> <data=[a,b]> <data=[c]>");
  CHECK(parse({"lr=1", "--", "--lr=2", "data=[c]"}) == ": <lr=1> <lr=2> <data=[c]>");
  CHECK(parse({"--model.d=8", "~model.dropout", "lr=1"}) == ": <model.d=8> <~model.dropout> <lr=1>");
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

TEST_CASE("cli: a word is the text as it is given, wherever it stands") {
  const char* const words[] = {"[x]", "[a,b]", "[a, b]", "[]", "[[a],b]", "{}", "[", "]", "[INST]{content}[/INST]", "", " ", "a b", "'q'",
      "\"q\"", "%%", "a=b", "a,b", "/x", "++", "true", "010", "run", "-", "-x", "--", "--name", "--name=z", "--many", "-[x]", "\\n"};
  std::string one, name;
  std::vector<std::string> list, many, single, parts;
  const auto declare = [&](CLI::App& app) {
    app.add_option("one", one)->required();
    app.add_option("list", list);
    app.add_option("-n,--name", name);
    app.add_option("--many", many);
    app.add_option("--single", single)->allow_extra_args(false);
    app.add_option("--parts", parts)->delimiter(',');
  };
  const auto command = [&](CLI::App& app) {
    app.require_subcommand(1);
    declare(*app.add_subcommand("run", ""));
  };
  for (const std::string word : words) {
    CAPTURE(word);
    const Words twice = {word, word};
    const auto parse = [&](const std::function<void(CLI::App&)>& setup, Words given) {
      one = name = "before";
      for (Words* const each : {&list, &many, &single, &parts}) each->clear();
      std::vector<const char*> pointers;
      for (const std::string& each : given) pointers.push_back(each.c_str());
      CHECK(run(pointers, setup, [] { return 0; }).err == "");
    };
    const bool is_option = word.size() > 1 && word[0] == '-';
    parse(declare, {"--name=" + word, "--many=" + word, "--many=" + word, "--single=" + word, "--", word, word, word});
    CHECK((one == word && list == twice && name == word && many == twice && single == Words{word}));
    parse(declare, {"first", "second", "--", word, word});
    CHECK((one == "first" && list == Words{"second", word, word}));
    Words all = {"run", "--single", word, "--name", word, "first"};
    if (is_option) all.push_back("--many=" + word);
    else all.insert(all.end(), {"--many", word});
    all.insert(all.end(), {"--", word, word});
    parse(command, all);
    CHECK((one == "first" && list == twice && name == word && many == Words{word} && single == Words{word}));
    if (word.find(',') == word.npos) {
      parse(command, {"run", "-n", word, "first", "--parts", word, "--parts=" + word});
      CHECK((name == word && parts == twice));
    }
    if (is_option) continue;
    parse(declare, {word, word, word, "--many", word, word, "-n" + word + "n"});
    CHECK((one == word && list == twice && many == twice && name == word + "n"));
    if (word == "++") continue;  // it ends the words of a command
    parse(command, {"run", word, word, word});
    CHECK((one == word && list == twice));
  }
  parts.clear();
  CHECK(run({"a", "--parts", "[a,b]"}, declare, [] { return 0; }).err == "");
  CHECK(parts == Words{"[a", "b]"});
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

TEST_CASE("table: no control character comes out as it is, in text and in JSON") {
  for (int code = 1; code < 0xa0; ++code) {
    const std::string text = code < 0x80 ? std::string(1, static_cast<char>(code)) : "\xc2" + std::string(1, static_cast<char>(code));
    const bool is_control = code < 0x20 || code == 0x7f || code >= 0x80;
    ResultTable names;
    names.add({.heading = "h", .key = "k", .left = true}, Words{"a" + text + "b"}, [](const std::string& name) { return name; });
    const std::string escaped =
        ricci::format_message("\\u00{}{}", {std::string(1, "0123456789abcdef"[code / 16]), std::string(1, "0123456789abcdef"[code % 16])});
    const std::string json = json_text(json_of(names), -1);
    CAPTURE(code);
    CHECK(contains(text_of(names), "a" + text + "b") != is_control);
    CHECK(std::none_of(json.begin(), json.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; }));
    CHECK(json.find("\xc2") == json.npos);
    if (code >= 0x7f) CHECK(json == "[{\"k\":\"a" + escaped + "b\"}]");
  }
  CHECK(json_text(Value("\u00a0\u00e9\u0020"), -1) == "\"\u00a0\u00e9 \"");  // what follows them is text
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
