#include "apps/terminal/cli.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <concepts>
#include <cstdio>
#include <memory>

#include "apps/run/config/nearest.h"
#include "apps/terminal/manual.h"
#include "apps/terminal/streams.h"
#include "core/error.h"
#include "cuda/ranks/launcher.h"

namespace ricci::apps {
namespace {

constexpr size_t kLongestMessage = 1000;  // bytes

// A folder may have an equals sign in its name, as runs/lr=0.1 has; no key has a slash. ~KEY takes a key back.
bool is_override(const std::string& word) {
  const size_t equals = word.find('='), slash = word.find('/');
  if (equals == word.npos) return word.starts_with('~') && slash == word.npos;
  return slash > equals;
}

// "model.layers" of model.layers=6 and of ~model.layers.
std::string key_of(const std::string& word) {
  const size_t start = word.starts_with('~') ? 1 : 0;
  return word.substr(start, word.find('=') - start);
}

// True if one of them is the other, or the section that it is in.
bool are_about_one(const std::string& key, const std::string& other) {
  return key == other || other.starts_with(key + ".") || key.starts_with(other + ".");
}

// CLI11 keeps words with dashes (given here without them) apart from words without, so it is not known which of two was typed last.
// Error: a key, or a section and a key in it, is given in both ways.
void check_one_way(const std::vector<std::string>& with_dashes, const std::vector<std::string>& without) {
  for (const std::string& dashed : with_dashes)
    for (const std::string& plain : without)
      if (are_about_one(key_of(dashed), key_of(plain)))
        throw CLI::ValidationError("--" + one_line(dashed) + " and " + one_line(plain) +
                                   " are about the same key: write both without dashes, so that the last one counts");
}

// The option that a user may have meant by an unknown one: --temp for --temperature, --max-tokens for --tokens, or a slip of the pen.
std::string nearest_option(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  const auto add = [&](const CLI::App& each) {
    for (const CLI::Option* option : each.get_options([](const CLI::Option* any) { return !any->get_group().empty(); }))
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  };
  for (const CLI::App* each : app.get_subcommands()) add(*each);
  add(app);
  std::string meant;
  for (const std::string& each : known)
    if (each.starts_with(word) || word.ends_with(each.substr(1))) meant += (meant.empty() ? "" : " or ") + ("'" + each + "'");
  return meant.empty() ? nearest_note(word, known) : ", the nearest is " + meant;
}

// The message about words that no option takes.
std::string unexpected(const CLI::App& app, const CLI::ExtrasError& mistake) {
  const std::vector<std::string> words = app.remaining(true);
  if (words.empty() || app.get_allow_extras()) return mistake.what();
  const auto option = std::find_if(words.begin(), words.end(), [](const std::string& word) { return word.size() > 1 && word[0] == '-'; });
  if (option == words.end())
    return "not expected: '" + one_line(words[0]) + "'" +
           (app.get_option_no_throw("--prompt") ? "; a text to continue is given as --prompt '" + one_line(words[0]) + "'" : "");
  const std::string name = option->substr(0, option->find('='));
  return "no option " + one_line(name) + nearest_option(app, name);
}

// The message about a missing or unknown command of a program that has some: frequncy of ricci-analyze. Empty for other mistakes.
std::string wrong_command(const CLI::App& app) {
  std::vector<std::string> known;
  std::string list;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(each->get_name());
    list += (list.empty() ? "" : ", ") + each->get_name();
  }
  if (known.empty() || !app.get_subcommands().empty()) return "";
  const std::vector<std::string> words = app.remaining();
  const auto word = std::find_if(words.begin(), words.end(), [](const std::string& any) { return !any.starts_with('-'); });
  if (word == words.end()) return "a command is required: " + list;
  return "no command '" + one_line(*word) + "'" + nearest_note(*word, known) + "; there are " + list;
}

// The right way to give a key that was meant by a word with dashes: --lr, --~lr.
std::string hint_for(const CLI::App& app, const std::string& word) {
  if (!word.starts_with("--")) return "";
  if (const std::string nearest = nearest_option(app, word); !nearest.empty()) return nearest;
  const std::string key = word.substr(2);
  return "; keys of a run file are given as " + key + (key.starts_with('~') ? "" : "=VALUE");
}

// CLI11 takes the next word for the value of "--name=", and so the value is a word of its own here.
bool takes_value(const CLI::App& app, const std::string& name) {
  if (const CLI::Option* option = app.get_option_no_throw(name)) return option->get_items_expected_max() > 0;
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(), [&](const CLI::App* command) { return takes_value(*command, name); });
}

// The words in reverse, as CLI11 wants them.
std::vector<std::string> reversed_words(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> words;
  bool only_words = false;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    only_words |= word == "--";
    const bool ends = !only_words && word.starts_with("--") && word.ends_with('=') && word.find('=') + 1 == word.size();
    const bool is_empty = ends && takes_value(app, word.substr(0, word.size() - 1));
    if (is_empty) word.pop_back();
    words.push_back(word);
    if (is_empty) words.emplace_back();
  }
  std::reverse(words.begin(), words.end());
  return words;
}

// CLI11 reads 010 as 8, and so a number has no zeros before it.
template <class Integer> bool is_integer(const std::string& text, Integer least, Integer most) {
  if (const size_t digits = text.starts_with('-'); text.size() > digits + 1 && text[digits] == '0') return false;
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= least && value <= most;
}

}  // namespace

std::string printable(std::string message) {
  if (message.size() > kLongestMessage)
    message = message.substr(0, kLongestMessage / 2) + " ... " + message.substr(message.size() - kLongestMessage / 2);
  return one_line(message, message.size());
}

int report(const AppText& text, const std::string& message, int exit_code) {
  std::fflush(stdout);
  const bool red = has_colours(STDERR_FILENO);
  std::fprintf(stderr, "%s%s: %s%s\n", red ? "\x1b[31m" : "", text.name, printable(message).c_str(), red ? "\x1b[0m" : "");
  return exit_code;
}

int after_output(const AppText& text, int exit_code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return exit_code;
  const std::string reason = errno ? ": " + system_reason() : "";
  return report(text, "cannot write to stdout" + reason, exit_code ? exit_code : 1);
}

std::optional<int> parse_arguments(
    CLI::App& app, int argc, const char* const* argv, const AppText& text, const std::function<void(CLI::App&)>& setup) {
  app.get_formatter()->column_width(36);
  add_text_flag(app, "--man", "", [&] { return man_page(app); });
  add_text_flag(app, "--complete", "", [&] { return offered_words(app); });
  for (const char* const hidden : {"--man", "--complete"}) app.get_option(hidden)->group("");
  try {
    setup(app);
    app.parse(reversed_words(app, argc, argv));
    return {};
  } catch (const CLI::Success& request) {  // --help, --version
    return after_output(text, app.exit(request));
  } catch (const CLI::Error& mistake) {
    if (find_launcher().rank > 0) {  // rank 0 prints it. A launcher ends all processes when one has ended, so the others wait
      sleep(2);
      return 2;
    }
    const auto* const extras = dynamic_cast<const CLI::ExtrasError*>(&mistake);
    const std::string command = wrong_command(app), other = extras ? unexpected(app, *extras) : mistake.what();
    return report(text, (command.empty() ? other : command) + " (--help lists the options)", 2);
  }
}

std::string any_integer(const std::string& text) {
  return is_integer<int64_t>(text, INT64_MIN, INT64_MAX) ? "" : "expected an integer, got " + text;
}

std::string at_least_one(const std::string& text) {
  return is_integer<int64_t>(text, 1, INT64_MAX) ? "" : "expected an integer of at least 1, got " + text;
}

std::string at_least_zero(const std::string& text) {
  return is_integer<uint64_t>(text, 0, UINT64_MAX) ? "" : "expected an integer of 0 or more, got " + text;
}

std::string thread_number(const std::string& text) {
  return is_integer<int64_t>(text, 0, 1024) ? "" : "expected an integer from 0 to 1024, got " + text;
}

void add_field_options(CLI::App& app, const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    std::string flag = "--" + field.key, description = field.description;
    std::replace(flag.begin(), flag.end(), '_', '-');
    description[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(description[0])));
    const auto add = [&]<class Member>(Member& member) {
      CLI::Option* const option = app.add_option(flag, member, description);
      const bool is_whole = !std::same_as<Member, double>;
      if (is_whole && field.bounds.low == 1) option->check(at_least_one);
      else if (std::same_as<Member, uint64_t> || (is_whole && field.bounds.low == 0)) option->check(at_least_zero);
      else if (is_whole && !std::same_as<Member, std::string>) option->check(any_integer);
      return option;
    };
    if (bool* const* const flagged = std::get_if<bool*>(&field.value)) app.add_flag(flag, **flagged, description);
    if (int64_t* const* const whole = std::get_if<int64_t*>(&field.value)) add(**whole)->capture_default_str();
    if (uint64_t* const* const natural = std::get_if<uint64_t*>(&field.value)) add(**natural)->capture_default_str();
    if (double* const* const real = std::get_if<double*>(&field.value)) add(**real)->capture_default_str();
    if (auto* const* const optional = std::get_if<std::optional<int64_t>*>(&field.value)) add(**optional);
    if (std::string* const* const text = std::get_if<std::string*>(&field.value)) add(**text);
    if (auto* const* const list = std::get_if<std::vector<int64_t>*>(&field.value)) {
      CLI::Option* const option = add(**list)->delimiter(',')->allow_extra_args(false);
      if (!(*list)->empty()) option->capture_default_str();
    }
  }
}

void add_run_arguments(CLI::App& app, RunOptions& options, const char* help, bool several) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("run", *words, help)->type_name(several ? "[FILE ...] [KEY=VALUE ...]" : "[FILE] [KEY=VALUE ...]");
  app.allow_extras();
  app.parse_complete_callback([&app, &options, words, several] {
    std::vector<std::string> with_dashes, without;
    for (const std::string& word : app.remaining()) {
      if (word == "--") continue;  // only words follow
      if (!word.starts_with("--") || word.find('=') == word.npos) throw CLI::ExtrasError(app.get_name(), {word + hint_for(app, word)});
      with_dashes.push_back(word.substr(2));
    }
    for (const std::string& word : *words) {
      if (word.empty()) throw CLI::ValidationError("the name of a run file is empty");
      if (word[0] == '=')
        throw CLI::ValidationError(one_line(word) + ": a key and its value have no blanks around the equals sign, as data=my.txt");
      const bool is_key = is_override(word);
      const bool is_first = options.file().empty();
      if (!is_key && !is_first && !several) throw CLI::ValidationError("two run files: " + options.file() + " and " + word);
      if (is_key) without.push_back(word);
      else if (is_first) options.files_[0] = word;
      else options.files_.push_back(word);
    }
    check_one_way(with_dashes, without);
    options.overrides_ = with_dashes;
    options.overrides_.insert(options.overrides_.end(), without.begin(), without.end());
  });
}

void add_text_flag(CLI::App& app, const char* flag, const char* help, const std::function<std::string()>& text) {
  app.add_flag_callback(
      flag,
      [text] {
        std::fputs(text().c_str(), stdout);
        throw CLI::Success();
      },
      help);
}

}  // namespace ricci::apps
