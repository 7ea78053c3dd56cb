// The command line: exit codes, texts on stdout and stderr, and the layout of --help. Tables as text and as JSON.
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
#include <sstream>
#include <stdexcept>

#include "apps/run/options.h"
#include "apps/run/train_config.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/table.h"
#include "core/error.h"
#include "tests/data/files.h"

using namespace ricci::apps;
using ricci::Json;
using ricci::to_text;
using namespace test_data;

namespace {

// The output to a descriptor while f runs.
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
      outcome.code = run_app(static_cast<int>(words.size()), words.data(), {"ricci train", "Trains a language model."}, setup, main);
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
  field("top", m.top, "an optional number").at_least(1);
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
  table.add({.heading = "million", .key = "bytes", .format = "{:.1f}", .factor = 1e-6}, kRows, &Row::bytes);
  table.add({.heading = "bytes", .format = ","}, kRows, &Row::bytes);
  table.add({.heading = "memory", .format = "bytes"}, kRows, &Row::bytes);
  table.add({.key = "time.seconds"}, kRows, &Row::seconds);
  table.add({.heading = "ms", .key = "time.ms", .format = "{:g}"}, kRows, [](const Row& row) { return row.seconds * 1e3; });
  table.add({.heading = "loss", .key = "loss", .format = "{:.2f}"}, kRows, &Row::loss);
  table.add({.heading = "best", .key = "best", .missing = ""}, kRows, [](const Row& row) { return row.loss ? Json(true) : Json(); });
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
  CHECK(own.err == "ricci train: matmul: index k is 3 but 4\n");
  CHECK(own.out.empty());
  CHECK(thrown(std::runtime_error("two\nlines")).err == "ricci train: two lines\n");
  CHECK(thrown(std::bad_alloc()).err == "ricci train: out of memory\n");
  CHECK(thrown(std::bad_alloc()).code == 1);
}

TEST_CASE("cli: help and version go to stdout, and the program does not run") {
  for (const char* flag : {"--help", "-h", "--version"}) {
    const Outcome outcome = run({flag}, no_options, []() -> int { throw std::runtime_error("ran"); });
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    if (std::string(flag) == "--version") CHECK(outcome.out.starts_with("ricci 0.3.0\ncommit   "));
    if (std::string(flag) != "--version") CHECK(contains(outcome.out, "Trains a language model.\nUsage: ricci train [OPTIONS]"));
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
      outcome.code = run_app(static_cast<int>(words.size()), words.data(), {"ricci train", "Trains a language model."}, no_options, [&] {
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
  CHECK(result.err == "ricci train: cannot write to stdout: No space left on device\n");
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
  CHECK(mistake({}) == "ricci train: --tokens is required (--help lists the options)\n");
  CHECK(mistake({"--tokens", "x"}) == "ricci train: Could not convert: --tokens = x (--help lists the options)\n");
  CHECK(
      mistake({"--tokens", "3", "--tokenz"}) == "ricci train: no option --tokenz, the nearest is '--tokens' (--help lists the options)\n");
  CHECK(mistake({"--tokens", "3", "--max-tokens", "5"}) == "ricci train: no option --max-tokens (--help lists the options)\n");
  CHECK(mistake({"--tokens", "3", "--frob"}) == "ricci train: no option --frob (--help lists the options)\n");
  CHECK(mistake({"--tokens", "3", "a", "b"}) == "ricci train: not expected: 'a' (--help lists the options)\n");
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
  CHECK(parse({"--seed", "-1"}).starts_with("ricci train: --seed: expected an integer of 0 or more, got -1"));
  for (const char* number : {"010", "0x10", "-01", "00", "1e3", ""})  // CLI11 would read some of them as other numbers
    CHECK(parse({"--top-k", number}).starts_with(std::string("ricci train: --top-k: expected an integer, got ") + number));
  CHECK(parse({"--top-k", "-1", "--seed", "0"}) == "1 -1 1 0");
  CHECK(parse({"--seed", "010"}).starts_with("ricci train: --seed: expected an integer of 0 or more, got 010"));
  CHECK(parse({"--top_k", "3"}).starts_with("ricci train: no option --top_k, the nearest is '--top-k'"));
  const std::string help = parse({"--help"});
  for (const char* text :
      {"--temperature FLOAT=1 ", "--top-k INT=0 ", "Sample from the k most probable tokens (0: from all)", "--seed UINT=1 "})
    CHECK(contains(help, text));
}

TEST_CASE("cli: flags, lists and optional numbers as members of a struct") {
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
  CHECK(parse({"--top", "0"}).starts_with("ricci train: --top: expected an integer of at least 1, got 0"));
  CHECK(parse({"--sizes", "4,0"}).starts_with("ricci train: --sizes: expected an integer of at least 1, got 0"));
  CHECK(parse({"--layers", "-1"}).starts_with("ricci train: --layers: expected an integer of 0 or more, got -1"));
  const std::string help = parse({"--help"});
  for (const char* text : {"--fast ", "--top INT ", "--name TEXT ", "--sizes INT=[1,2] ...", "--layers INT ..."})
    CHECK(contains(help, text));
}

TEST_CASE("cli: a run file and overrides, in any order") {
  const auto parse = [](std::vector<const char*> words) {
    RunOptions options;
    std::string all = "not run";
    const Outcome outcome = run(
        words, [&](CLI::App& app) { add_run_options(app, options); },
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
  CHECK(parse({""}) == "ricci train: a run file has an empty name (--help lists the options)\n");
  CHECK(parse({"a.yaml", "b.yaml"}) == "ricci train: expected one run file, got a.yaml and b.yaml (--help lists the options)\n");
  CHECK(parse({"--lr"}).find("--lr; keys of a run file are written as lr=VALUE (--help") != std::string::npos);
  CHECK(parse({"--~lr"}).find("--~lr; keys of a run file are written as ~lr (--help") != std::string::npos);
  // Words with and without dashes keep their order: the last one of a key wins.
  CHECK(parse({"--model.layers=1", "model.layers=2"}) == ": <model.layers=1> <model.layers=2>");
  CHECK(parse({"model.layers=2", "run.yaml", "--model.layers=1"}) == "run.yaml: <model.layers=2> <model.layers=1>");
  CHECK(parse({"~model", "--data=[a,b]", "data=[c]"}) == ": <~model> <data=[a,b]> <data=[c]>");
  CHECK(parse({"lr=1", "--", "--lr=2", "data=[c]"}) == ": <lr=1> <lr=2> <data=[c]>");
  CHECK(parse({"--model.d=8", "~model.dropout", "lr=1"}) == ": <model.d=8> <~model.dropout> <lr=1>");
}

TEST_CASE("cli: a mistake names the nearest command or option, and --name= without a value is a mistake") {
  std::string name;
  const auto mistake = [&](std::vector<const char*> words) {
    const auto setup = [&](CLI::App& app) {
      app.require_subcommand(1);
      app.add_subcommand("make", "")->add_option("--name", name);
      app.add_subcommand("take", "");
    };
    const Outcome outcome = run(words, setup, [] { return 0; });
    CHECK(outcome.code == 2);
    return outcome.err.substr(0, outcome.err.find(" (--help lists the options)\n"));
  };
  CHECK(mistake({}) == "ricci train: A subcommand is required");
  CHECK(mistake({"maek"}) == "ricci train: no command 'maek', the nearest is 'make'; the commands are make, take");
  CHECK(mistake({"frobnicate", "--x"}) == "ricci train: no command 'frobnicate'; the commands are make, take");
  CHECK(mistake({"make", "--nam", "x"}) == "ricci train: no option --nam, the nearest is '--name'");
  CHECK(mistake({"make", "--name=", "x"}) == "ricci train: --name=: the value is missing");
  CHECK(mistake({"make", "x"}) == "ricci train: not expected: 'x'");
}

TEST_CASE("cli: texts that begin with a dash or a bracket arrive as they are typed") {
  std::string prompt;
  Words texts, forms;
  const auto declare = [&](CLI::App& app) {
    app.add_option("--prompt", prompt);
    keep_brackets(app.add_option("--template", forms));
    keep_brackets(app.add_option("texts", texts));
  };
  for (const char* const word : {"-x", "--prompt", "--", "[a, b]", "[]", "-1", "", "a=b", "[INST]{content}[/INST]", "\\n"}) {
    CAPTURE(word);
    CHECK(run({"--prompt", word}, declare, [] { return 0; }).err == "");
    CHECK(prompt == word);
    const std::string joined = std::string("--prompt=") + word;
    if (*word) CHECK(run({joined.c_str()}, declare, [] { return 0; }).err == "");
    CHECK(prompt == word);
    if (word == std::string("--")) continue;
    texts.clear();
    CHECK(run({"--", word, word}, declare, [] { return 0; }).err == "");
    CHECK(texts == Words{word, word});
  }
  CHECK(run({"[a, b]", "[c]", "--template", "", "[SYS]{content}[/SYS]", "{content}"}, declare, [] { return 0; }).err == "");
  CHECK(texts == Words{"[a, b]", "[c]"});
  CHECK(forms == Words{"", "[SYS]{content}[/SYS]", "{content}"});
}

TEST_CASE("cli: --help fits 80 columns and ends with the examples") {
  std::string name, other;
  const std::string many = "a text of many words, which a terminal of 80 columns does not hold in a line";
  const auto setup = [&](CLI::App& app) {
    app.add_option("--a-very-long-name,--another-very-long-name", name, many)->type_name("A TYPE OF MANY WORDS");
    CLI::App* const command = app.add_subcommand("make", many + "; " + many);
    CLI::Option* const first = command->add_option("--first", name, many + "; " + many);
    command->add_option("--second", other, many)->excludes(first);
  };
  const auto help = [&](std::vector<const char*> words) {
    words.insert(words.begin(), "ricci train");
    return captured(STDOUT_FILENO, stdout, [&] {
      const AppText text{.name = "ricci train", .summary = many.c_str(), .examples = "ricci train one\nricci train two"};
      run_app(static_cast<int>(words.size()), words.data(), text, setup, [] { return 1; });
    });
  };
  for (const std::string& text : {help({"--help"}), help({"make", "--help"})}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
    CHECK(text.ends_with("\nExamples:\n  ricci train one\n  ricci train two\n"));
  }
  CHECK(contains(help({"make", "--help"}), "  --second TEXT Excludes: --first\n"
                                           "                          a text of many words, which a terminal of 80 columns\n"
                                           "                          does not hold in a line\n"));
  CHECK(wrapped("one two", 4, 78) == "one\n    two\n");
  CHECK(two_columns("a", "b") == "  a" + std::string(23, ' ') + "b\n");
}

TEST_CASE("cli: a message has no control characters, not even those of two bytes in UTF-8") {
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
  CHECK(text_of(table()) == "run    million      bytes    memory   ms  loss  best\n"
                            "one        1.5  1,500,000   1.4 MiB  250  2.50     1\n"
                            "zwölf      0.0         12  12 bytes  inf     -");
  CHECK(cells_of(table())[2] == Cells{"zwölf", "0.0", "12", "12 bytes", "inf", "-", ""});
}

TEST_CASE("table: a large number has three digits and a power of ten") {
  CHECK(show_number("{:.2f}", 999'999'999.5) == "999999999.50");
  CHECK(show_number("{:.2f}", 353748521614327349248.0) == "3.54e+20");
  CHECK(show_number("{:.2f}", INFINITY) == "inf");
}

TEST_CASE("table: columns beyond 80 follow below, after the names of the rows") {
  const std::vector<std::string> names = {"x", "y"};
  ResultTable wide;
  wide.add({.heading = "run", .left = true}, names, [](const std::string& name) { return name; });
  for (const char letter : {'a', 'b'})
    wide.add({.heading = std::string(50, letter)}, names, [](const std::string& name) { return name + name; });
  const std::string blanks(52, ' ');
  const auto part = [&](char letter) { return "run  " + std::string(50, letter) + "\nx" + blanks + "xx\ny" + blanks + "yy"; };
  CHECK(text_of(wide) == part('a') + "\n\n" + part('b'));
}

TEST_CASE("table: JSON has the columns with a key, unscaled; a missing value is left out, an infinite one is null") {
  CHECK(to_text(json_of(table())) == R"([{"run":"one","bytes":1500000,"time":{"seconds":0.25,"ms":250.0},"loss":2.5,"best":true},)"
                                     R"({"run":"zwölf","bytes":12,"time":{"seconds":null,"ms":null}}])");
  CHECK(to_text(json_of(ResultTable())) == "[]");
}

TEST_CASE("table: text and JSON have no raw control characters") {
  for (int code = 1; code < 0xa0; ++code) {
    const std::string text = code < 0x80 ? std::string(1, static_cast<char>(code)) : "\xc2" + std::string(1, static_cast<char>(code));
    const bool is_control = code < 0x20 || code == 0x7f || code >= 0x80;
    ResultTable names;
    names.add({.heading = "h", .key = "k", .left = true}, Words{"a" + text + "b"}, [](const std::string& name) { return name; });
    const std::string escaped =
        ricci::format_message("\\u00{}{}", {std::string(1, "0123456789abcdef"[code / 16]), std::string(1, "0123456789abcdef"[code % 16])});
    const std::string json = to_text(json_of(names));
    CAPTURE(code);
    CHECK(contains(text_of(names), "a" + text + "b") != is_control);
    CHECK(std::none_of(json.begin(), json.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; }));
    CHECK(json.find("\xc2") == json.npos);
    if (code >= 0x7f) CHECK(json == "[{\"k\":\"a" + escaped + "b\"}]");
  }
}
