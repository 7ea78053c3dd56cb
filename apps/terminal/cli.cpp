#include "apps/terminal/cli.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <concepts>
#include <cstdio>

#include "apps/terminal/streams.h"
#include "core/error.h"
#include "core/nearest.h"
#include "cuda/ranks/launcher.h"

namespace ricci::apps {
namespace {

constexpr size_t kLongestMessage = 1000;  // bytes

// ---- Words as they are given
// CLI11 takes [a,b] for a list wherever an option takes more than one word, the next word for the value of "--name=", and the words after
// "--" in a command for words of the program. A byte that no command line can hold makes them ordinary words; each option removes it.
constexpr char kMark = '\0';
constexpr const char* kOnlyWords =
    "--only-words-follow";  // in the place of "--": it ends a list of words as well, and stays in its command

bool takes_value(const CLI::App& app, const std::string& name) {
  if (!name.starts_with('-')) return false;
  if (const CLI::Option* option = app.get_option_no_throw(name)) return option->get_items_expected_max() > 0;
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(), [&](const CLI::App* command) { return takes_value(*command, name); });
}

std::string without_marks(std::string word) {
  std::erase(word, kMark);
  return word;
}

void expect_marks(CLI::App& app) {
  app.add_flag(kOnlyWords)->group("");
  for (CLI::Option* const option : app.get_options()) option->transform(without_marks);
  for (CLI::App* const command : app.get_subcommands([](CLI::App*) { return true; })) expect_marks(*command);
}

// The words in reverse, as CLI11 wants them. A program that passes its words on gets them without marks.
std::vector<std::string> reversed_words(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> words;
  bool only_words = app.get_prefix_command();
  for (int i = argc - 1; i > 0; --i) words.emplace_back(argv[i]);
  for (size_t i = words.size(); i-- > 0 && !only_words;) {
    std::string& word = words[i];
    const size_t equals = word.starts_with("--") ? word.find('=') : word.npos;
    if (word == "--" && !(i + 1 < words.size() && takes_value(app, words[i + 1]))) {
      for (size_t k = 0; k < i; ++k) words[k].insert(0, 1, kMark);
      word = kOnlyWords;
      only_words = true;
    } else if (equals == word.npos ? word.ends_with(']') : takes_value(app, word.substr(0, equals))) {
      word += kMark;
    }
  }
  return words;
}

// ---- Mistakes
// The message about words that no option takes.
std::string unexpected(const CLI::App& app, const CLI::ExtrasError& mistake) {
  const std::vector<std::string> words = remaining_words(app);
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
  const std::vector<std::string> words = remaining_words(app);
  const auto word = std::find_if(words.begin(), words.end(), [](const std::string& any) { return !any.starts_with('-'); });
  if (word == words.end()) return "a command is required: " + list;
  return "no command '" + one_line(*word) + "'" + nearest_note(*word, known) + "; there are " + list;
}

// CLI11 reads 010 as 8, and so a number has no zeros before it.
template <class Integer> bool is_integer(const std::string& text, Integer least, Integer most) {
  if (const size_t digits = text.starts_with('-'); text.size() > digits + 1 && text[digits] == '0') return false;
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= least && value <= most;
}

// ---- The manual page and completion, both from the options that the program declares
// Text for troff: a backslash and a minus as themselves, and no line that begins as a request does.
std::string troff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) result += "\\&";
    if (c == '\\') result += "\\e";
    else if (c == '-') result += "\\-";
    else result += c;
  }
  return result;
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

std::string section_of(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* const option : shown_options(app)) {
    const bool has_flag = option->nonpositional();
    const std::string type = option->get_items_expected_max() > 0 ? option->get_type_name() : "", value = option->get_default_str();
    text += ".TP\n\\fB" + troff(option->get_name(!has_flag, has_flag)) + "\\fR" + (type.empty() ? "" : " " + troff(type)) + "\n" +
            troff(option->get_description() + (value.empty() ? "" : " (default: " + value + ")")) + "\n";
  }
  return text;
}

// In troff, with the macros of man(7): name, synopsis, commands and options, each with its own words.
std::string man_page(const CLI::App& app) {
  const std::string name = app.get_name();
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  const std::vector<const CLI::App*> commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string text = ".TH " + troff(title) + " 1 \"\" \"ricci " RICCI_VERSION "\" \"ricci\"\n.SH NAME\n" + troff(name) + " \\- " +
                     troff(app.get_description()) + "\n.SH SYNOPSIS\n.B " + troff(name) + "\n";
  if (!commands.empty()) text += "COMMAND\n";
  text += "[OPTIONS]\n";
  for (const CLI::Option* const option : shown_options(app))
    if (const std::string type = option->get_type_name(); option->get_positional())
      text += troff(type.starts_with('[') ? type : option->get_name(true)) + "\n";
  text += ".SH OPTIONS\n" + section_of(app);
  for (const CLI::App* const command : commands)
    text += ".SH COMMAND " + troff(command->get_name()) + "\n" + troff(command->get_description()) + "\n" + section_of(*command);
  return text + ".SH SEE ALSO\n.BR ricci (1);\nthe manual of the programs is apps/README.md in the sources.\n";
}

// The commands and options, a line each, without those that --help hides.
std::string offered_words(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* const option : shown_options(app))
    for (const std::string& name : option->get_lnames()) text += "--" + name + "\n";
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    text += command->get_name() + "\n" + offered_words(*command);
  return text;
}

}  // namespace

std::vector<std::string> remaining_words(const CLI::App& app) {
  std::vector<std::string> words = app.remaining(true);
  std::transform(words.begin(), words.end(), words.begin(), without_marks);
  return words;
}

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
  add_text_flag(app, "--complete", "", [&] { return offered_words(app) + (text.more_words ? text.more_words() : ""); });
  for (const char* const hidden : {"--man", "--complete"}) app.get_option(hidden)->group("");
  try {
    setup(app);
    expect_marks(app);
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

std::string nearest_option(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  const auto add = [&](const CLI::App& each) {
    for (const CLI::Option* option : shown_options(each))
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  };
  for (const CLI::App* each : app.get_subcommands()) add(*each);
  add(app);
  std::string meant;
  for (const std::string& each : known)
    if (each.starts_with(word) || word.ends_with(each.substr(1))) meant += (meant.empty() ? "" : " or ") + ("'" + each + "'");
  return meant.empty() ? nearest_note(word, known) : ", the nearest is " + meant;
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
