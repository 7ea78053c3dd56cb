// Fuzzes command lines. The first byte chooses the command, and zero bytes divide the words. The commands only declare their options.
#include "apps/run/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <set>
#include <sstream>

#include "apps/run/commands.h"
#include "apps/run/train_config.h"
#include "tests/fuzz/input.h"

using namespace ricci;
using namespace ricci::apps;
using Words = std::vector<std::string>;

namespace {

// Collects everything that is printed while it lives. Sanitizers print their reports through other streams.
class Printed {
 public:
  Printed() {
    stdout = ::open_memstream(&text_[0], &size_[0]);
    stderr = ::open_memstream(&text_[1], &size_[1]);
  }
  ~Printed() {
    std::fclose(std::exchange(stdout, out_));
    std::fclose(std::exchange(stderr, err_));
    std::cout.rdbuf(help_);
    for (char* text : text_) std::free(text);
  }
  std::string errors() {
    std::fflush(stderr);
    return {text_[1], size_[1]};
  }

 private:
  FILE *const out_ = stdout, *const err_ = stderr;
  char* text_[2] = {};
  size_t size_[2] = {};
  std::ostringstream help_text_;
  std::streambuf* const help_ = std::cout.rdbuf(help_text_.rdbuf());
};

void check_line(const std::string& line) {
  constexpr size_t kMost = 1100;
  fuzz::require(
      line.size() > 1 && line.size() <= kMost && one_line(line, kMost) == line, "a mistake is one line without control characters");
}

// True if the words were accepted. A mistake is one line; --help and the like print none.
bool accepts(CLI::App& app, const AppText& text, const std::function<void(CLI::App&)>& setup, const Words& words) {
  std::vector<const char*> argv{text.name};
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::optional<int> code;
  std::string errors, thrown;
  {
    Printed printed;
    try {
      code = parse_arguments(app, static_cast<int>(argv.size()), argv.data(), text, setup);
    } catch (const Error& error) {
      thrown = printable(error.what());
    }
    errors = printed.errors();
  }
  if (!thrown.empty()) {
    check_line(thrown);
    return false;
  }
  fuzz::require(!code || *code == 0 || *code == 2, "an exit code is 0 or 2");
  fuzz::require(errors.empty() == (code.value_or(0) == 0), "a mistake has a message");
  if (errors.empty()) return !code;
  fuzz::require(errors.starts_with(std::string(text.name) + ": ") && errors.ends_with('\n'), "a line begins with the program");
  errors.pop_back();
  check_line(errors);
  return false;
}

// The values of the options, as words that give the same values.
Words words_of(const CLI::App& app) {
  Words words, positional;
  for (const CLI::Option* option : app.get_options()) {
    const bool is_flag = option->get_items_expected_max() == 0;
    for (const std::string& value : option->results()) {
      if (!option->nonpositional()) {
        positional.push_back(value);
        continue;
      }
      const std::string name = "--" + option->get_lnames().at(0);
      words.push_back(is_flag || !value.empty() ? name + "=" + value : name);
      if (!is_flag && value.empty()) words.push_back("");
    }
  }
  for (const CLI::App* command : app.get_subcommands()) {
    words.push_back(command->get_name());
    const Words more = words_of(*command);
    words.insert(words.end(), more.begin(), more.end());
  }
  if (positional.empty()) return words;
  words.push_back("--");
  words.insert(words.end(), positional.begin(), positional.end());
  return words;
}

// Words that are not options are returned unchanged; only a list divides them, at commas, and CLI11 opens one in brackets.
void check_given(const CLI::App& app, const Words& words) {
  std::set<std::string> taken{"--", "++"};  // the end of the options, and of a command's words
  const auto add = [&](const auto& self, const CLI::App& each) -> void {
    for (const CLI::Option* option : each.get_options()) taken.insert(option->results().begin(), option->results().end());
    for (const std::string& word : each.remaining()) taken.insert(word);
    for (const CLI::App* command : each.get_subcommands()) {
      taken.insert(command->get_name());
      self(self, *command);
    }
  };
  add(add, app);
  for (const std::string& word : words) {
    if (word.starts_with('-') || taken.contains(word) || (word.starts_with('[') && word.ends_with(']'))) continue;
    std::istringstream parts(word);
    fuzz::require(word.find(',') != word.npos, "a word is the text as it is given");
    for (std::string part; std::getline(parts, part, ',');)
      fuzz::require(part.empty() || taken.contains(part), "a part of a list is given");
  }
}

// ---- The options of ricci train, and the options of structs with numbers
struct Trained {
  RunOptions run;
  Sampling sampling;
  std::vector<int64_t> list;
};
const AppText kTrain{"ricci train", "Trains."};

// The integers of an option as written.
template <class Integer> std::vector<Integer> written(const CLI::App& app, const char* option, std::vector<Integer> otherwise) {
  std::vector<Integer> numbers;
  for (const std::string& text : app.get_option(option)->results()) {
    const char* const end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, numbers.emplace_back());
    fuzz::require(error == std::errc() && read == end, "an integer is decimal");
  }
  return numbers.empty() ? otherwise : numbers;
}

bool accepts(Trained& options, const Words& words) {
  CLI::App app(kTrain.summary, kTrain.name);
  const bool accepted = accepts(
      app, kTrain,
      [&](CLI::App& declared) {
        add_run_options(declared, options.run);
        add_field_options(declared, options.sampling);
        declared.add_option("--list", options.list)->delimiter(',')->allow_extra_args(false)->check(at_least_zero);
      },
      words);
  if (!accepted) return false;
  check_given(app, words);
  const Sampling& sampling = options.sampling;
  fuzz::require(written(app, "--top-k", std::vector{sampling.top_k}) == std::vector{sampling.top_k} &&
                    written(app, "--seed", std::vector{sampling.seed}) == std::vector{sampling.seed} &&
                    written(app, "--list", options.list) == options.list,
      "a number has the written value");
  return true;
}

// The keys that were given, and the numbers, as words.
Words words_of(const TrainConfig& config, Trained options) {
  Words words;
  TrainConfig copy = config;
  for (const Field& field : fields_of(copy))
    if (field.is_read && config.given.contains(field.key)) words.push_back(field.key + "=" + value_text(field));
  for (const Field& field : fields_of(options.sampling)) {
    std::string name = "--" + field.key;
    std::replace(name.begin(), name.end(), '_', '-');
    words.push_back(name + "=" + value_text(field));
  }
  for (const int64_t number : options.list) words.push_back("--list=" + std::to_string(number));
  return words;
}

void train(const Words& words) {
  Trained options, printed;
  if (!accepts(options, words)) return;
  fuzz::attempt([&] {
    const auto config = load_config<TrainConfig>("", options.run.overrides);
    const Words same = words_of(config, options);
    fuzz::require(accepts(printed, same), "printed options are accepted");
    const auto again = load_config<TrainConfig>("", printed.run.overrides);
    fuzz::require(to_yaml(again) == to_yaml(config) && words_of(again, printed) == same, "printed options read back unchanged");
  });
}

void parse(const Command& command, const Words& given) {
  const AppText& text = command.text;
  CLI::App app(text.summary, text.name), other(text.summary, text.name);
  std::function<int()> run, run_other;  // they hold the options
  if (!accepts(
          app, text, [&](CLI::App& declared) { run = command.declare(declared); }, given))
    return;
  check_given(app, given);
  const Words words = words_of(app);
  const bool is_accepted = accepts(
      other, text, [&](CLI::App& declared) { run_other = command.declare(declared); }, words);
  fuzz::require(is_accepted && words_of(other) == words, "values as words give the same values");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > 4096) return 0;
  const Words words = fuzz::parts_of({reinterpret_cast<const char*>(data) + 1, size - 1});
  if (data[0] % 3 == 0) train(words);
  else if (data[0] % 3 == 1) parse(tokenize_command, words);
  else parse(prepare_command, words);
  return 0;
}
