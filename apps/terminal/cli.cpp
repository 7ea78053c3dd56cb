#include "apps/terminal/cli.h"

#include <cxxabi.h>
#include <ricci_commit.h>  // apps/commit.cmake writes it
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <concepts>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <typeinfo>

#include "core/cpu/isa.h"
#include "core/error.h"
#include "core/nearest.h"
#include "cuda/ranks/ranks.h"

namespace ricci::apps {
namespace {

#ifdef __clang__
constexpr const char* kCompiler = "clang++ " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

// Checks an integer. Leading zeros are an error: CLI11 would read 010 as 8.
template <class Integer> std::string check_integer(const std::string& text, Integer least, Integer most, const char* which) {
  const size_t digits = text.starts_with('-');
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size() && !(text[digits] == '0' && text.size() > digits + 1);
  return is_whole && value >= least && value <= most ? "" : std::string("expected an integer") + which + ", got " + text;
}

// Wraps the lines of --help.
class Layout : public CLI::Formatter {
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
    if (const size_t lines = help.find("\n\n\n"); lines != help.npos) help.erase(lines, 1);  // a hidden option would leave two blank lines
    return help;
  }
  std::string make_description(const CLI::App* app) const override {
    return app->get_description().empty() ? "" : wrapped(app->get_description());
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return wrapped(CLI::Formatter::make_usage(app, std::move(name)), 4);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return two_columns(command->get_name(), command->get_description());
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return two_columns(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
  }
  // CLI11 would print the word limit of keep_brackets().
  std::string make_option_usage(const CLI::Option* option) const override {
    return option->get_option_text().empty() ? CLI::Formatter::make_option_usage(option) : "[" + option->get_name(true) + "...]";
  }
};

// Throws an error if --name= has no value, for example from an empty script variable. CLI11 would read the next word as the value.
void check_values(const CLI::App& app, int argc, const char* const* argv) {
  if (app.get_allow_extras() || app.get_prefix_command()) return;
  for (int i = 1; i < argc && std::string(argv[i]) != "--"; ++i)
    if (const std::string word = argv[i]; word.starts_with("--") && word.find('=') == word.size() - 1)
      throw CLI::ValidationError(word, "the value is missing");
}

// Explains a usage error, and suggests the nearest known word for an unknown word. CLI11 would list all unknown words in reverse.
std::string explain(const CLI::App& app, const CLI::Error& mistake) {
  std::vector<std::string> options, others, commands;
  for (const std::string& word : app.remaining(true)) (word.size() > 1 && word[0] == '-' ? options : others).push_back(word);
  std::erase(options, "--");
  if (app.get_allow_extras() || app.get_prefix_command() || (options.empty() && others.empty())) return mistake.what();
  if (app.get_subcommands().empty())
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) commands.push_back(command->get_name());
  if (!others.empty() && !commands.empty())
    return "no command '" + others[0] + "'" + nearest_note(others[0], commands) + "; the commands are " + CLI::detail::join(commands, ", ");
  if (options.empty()) return "not expected: '" + others[0] + "'";
  const std::string name = options[0].substr(0, options[0].find('='));
  return "no option " + name + nearest_option(app, name);
}

int report(const AppText& text, const std::string& message, int exit_code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", text.name, printable(message).c_str());
  return exit_code;
}

// Reports that memory ran out in a destructor or before main. An exception would need memory.
const std::terminate_handler otherwise = std::set_terminate([] {
  if (const std::type_info* const thrown = abi::__cxa_current_exception_type(); thrown && *thrown == typeid(std::bad_alloc)) {
    std::fprintf(stderr, "%s: out of memory\n", program_invocation_short_name);
    std::_Exit(1);
  }
  otherwise();
});

int report_exception(const AppText& text, const std::string& message) {
  Ranks& ranks = Ranks::joined();
  if (ranks.count() > 1) ranks.end_all(printable(ranks.with_rank(message)));
  return report(text, message, 1);
}

int finish_output(const AppText& text, int exit_code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return exit_code;
  const std::string reason = errno ? ": " + system_reason() : "";
  return report(text, "cannot write to stdout" + reason, exit_code ? exit_code : 1);
}

std::string version_text() {
  const std::string library = transport.version ? transport.version() : "";
  return format_message("ricci " RICCI_VERSION "\ncommit   " RICCI_COMMIT "\ncompiler {}\nCUDA     " RICCI_CUDA_VERSION
                        "\nMPI      {}\nCPU      {}",
      {kCompiler, library.empty() ? RICCI_MPI_VERSION : one_line(library), name_of(cpu_isa())});
}

}  // namespace

std::string printable(const std::string& message) { return one_line(message, 1000); }

std::optional<int> parse_arguments(
    CLI::App& app, int argc, const char* const* argv, const AppText& text, const std::function<void(CLI::App&)>& setup) {
  app.formatter(std::make_shared<Layout>());
  std::string examples = text.examples ? text.examples : "";
  if (const size_t end = examples.find('\n'); end != examples.npos) examples.insert(end + 1, "  ");
  if (text.examples) app.footer("Examples:\n  " + examples);
  try {
    setup(app);
    check_values(app, argc, argv);
    app.parse(argc, argv);
    return {};
  } catch (const CLI::Success& request) {  // --help, --version
    return finish_output(text, app.exit(request));
  } catch (const CLI::Error& mistake) {
    if (find_launcher().rank > 0) {  // rank 0 prints the line; if this rank ended first, the launcher would kill rank 0
      sleep(2);
      return 2;
    }
    return report(text, explain(app, mistake) + " (--help lists the options)", 2);
  }
}

int run_app(
    int argc, const char* const* argv, const AppText& text, const std::function<void(CLI::App&)>& setup, const std::function<int()>& run) {
  std::signal(SIGXFSZ, SIG_IGN);                                 // then a file larger than `ulimit -f` causes a write error
  program_invocation_short_name = const_cast<char*>(text.name);  // the prefix of lines that other code writes
  try {
    CLI::App app(text.summary, text.name);
    app.set_version_flag("--version", version_text, "Print the version and exit");
    if (const auto ended = parse_arguments(app, argc, argv, text, setup)) return *ended;
    if (const Launcher launcher = find_launcher(); launcher.count > 1 && !text.may_be_several)
      fail("runs as one process, but {} started {}", {launcher.name, launcher.count});
    const int exit_code = run();
    Ranks::leave();
    return text.prints_result ? finish_output(text, exit_code) : exit_code;
  } catch (const std::exception& error) {
    const bool is_too_much = dynamic_cast<const std::bad_alloc*>(&error) || dynamic_cast<const std::length_error*>(&error);
    return report_exception(text, is_too_much ? "out of memory" : error.what());
  }
}

int run_command(const Command& command, int argc, const char* const* argv) {
  std::function<int()> run;
  return run_app(
      argc, argv, command.text, [&](CLI::App& app) { run = command.declare(app); }, [&] { return run(); });
}

std::string build_info() { return std::string("ricci " RICCI_VERSION ", commit " RICCI_COMMIT ", ") + kCompiler; }

std::string wrapped(const std::string& text, size_t blanks, size_t column) {
  constexpr size_t kColumns = 80;
  std::istringstream words(text);
  std::string lines;
  for (std::string word; words >> word; column += word.size()) {
    const bool fits = column + 1 + word.size() <= kColumns;
    if (!lines.empty()) lines += fits ? " " : "\n" + std::string(blanks, ' ');
    if (!lines.empty()) column = fits ? column + 1 : blanks;
    lines += word;
  }
  return lines + "\n";
}

std::string two_columns(const std::string& name, const std::string& text) {
  constexpr size_t kSecond = 26;
  std::string lines = "  " + wrapped(name, 6, 2);
  if (text.empty()) return lines;
  if (lines.size() < kSecond) lines.pop_back();
  lines.append(lines.size() < kSecond ? kSecond - lines.size() : kSecond, ' ');
  return lines + wrapped(text, kSecond, kSecond);
}

std::string nearest_option(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  std::vector<const CLI::App*> places{&app};
  for (const CLI::App* command : app.get_subcommands()) places.insert(places.begin(), command);
  for (const CLI::App* place : places)
    for (const CLI::Option* option : place->get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  const auto longer = std::find_if(known.begin(), known.end(), [&](const std::string& name) { return name.starts_with(word); });
  return longer == known.end() ? nearest_note(word, known) : ", the nearest is '" + *longer + "'";
}

std::string at_least_one(const std::string& text) { return check_integer<int64_t>(text, 1, INT64_MAX, " of at least 1"); }
std::string at_least_zero(const std::string& text) { return check_integer<uint64_t>(text, 0, UINT64_MAX, " of 0 or more"); }
std::string thread_number(const std::string& text) { return check_integer<int64_t>(text, 0, 1024, " from 0 to 1024"); }

void keep_brackets(CLI::Option* texts) {
  constexpr int kMost = 1 << 20;
  texts->allow_extra_args(false)->expected(kMost)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->option_text("TEXT ...");
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
      else if (is_whole && !std::same_as<Member, std::string>)
        option->check([](const std::string& text) { return check_integer<int64_t>(text, INT64_MIN, INT64_MAX, ""); });
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

}  // namespace ricci::apps
