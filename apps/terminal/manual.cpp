#include "apps/terminal/manual.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <vector>

#include "apps/run/config/config.h"
#include "apps/run/config/train_config.h"

namespace ricci::apps {
namespace {

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

}  // namespace

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

std::string offered_words(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* const option : shown_options(app))
    for (const std::string& name : option->get_lnames()) text += "--" + name + "\n";
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    text += command->get_name() + "\n" + offered_words(*command);
  if (!app.get_option_no_throw("--help-config")) return text;
  TrainConfig config;
  for (const Field& field : fields_of(config)) text += field.key + "=\n";
  return text;
}

}  // namespace ricci::apps
