// ricci-generate: continues prompts with a trained model.
//   ricci-generate runs/NAME --prompt 'ROMEO:\n' --stop '\n\n'
//   ricci-generate runs/NAME --prompt - --samples 4 <prompt.txt
//   ricci-generate runs/NAME --jsonl <prompts.jsonl >texts.jsonl
//   ricci-generate runs/NAME --chat
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "apps/run/talk.h"
#include "apps/run/writer.h"
#include "apps/terminal/streams.h"
#include "core/cpu/clock.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/json/value.h"
#include "data/text/utf8.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr const char* kBetween = "---------------\n";  // between several texts

struct Options {
  ModelOptions model;
  WritingOptions writing;
  std::string run, prompt = "\\n", prompt_file, system;
  std::vector<std::string> form;
  bool prompt_given = false, json_lines = false, interactive = false, chat = false, speed = false;
};

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// Error: the family of the model writes no text.
OpenModel open_writer(const Options& options) {
  OpenModel open = open_model(options.run, options.model);
  const ModelConfig& config = open.model.config();
  if (config.traits().writes_text()) return open;
  const char* const shows =
      is_classifier(open.run.config()) ? "ricci-predict prints the class of a text" : "ricci-analyze completions shows what it predicts";
  fail("{}: model.family: {} writes no text; {}", {open.run.path(), name_of(config.family), shows});
}

// Continues prompts, and knows how long it took.
class Generator {
 public:
  explicit Generator(const Options& options) : options_(options), open_(open_writer(options)) {
    if (const std::string note = open_.run.context_note(open_.context); !note.empty())
      std::fputs(format_message("context {}{}\n", {open_.context, note}).c_str(), stderr);
  }

  // One text as it is made, several with a line between them when all are there.
  void print_texts(const std::string& prompt) {
    const bool one = options_.writing.samples == 1;
    prompt_ids(*open_.run.tokenizer(), prompt);  // an impossible one is reported before it is printed
    if (one) print(prompt);
    const auto texts = write(prompt, [&](const std::string& piece) {
      if (one) print(piece);
    });
    if (one) print("\n");
    for (const Written& each : texts) {
      if (!one) print((&each == texts.data() ? "" : kBetween) + prompt + each.text + "\n");
      if (options_.writing.log_probabilities) print(log_probability_lines(each, *open_.run.tokenizer()));
    }
  }

  void print_json(const std::string& prompt) {
    const auto texts = write(prompt, [](const std::string&) {});
    const std::string quoted = quoted_json(replace_invalid_utf8(prompt), true);
    for (size_t i = 0; i < texts.size(); ++i)
      print(
          format_message("{{\"prompt\": {}, \"sample\": {}, {}}}\n", {quoted, i, json_members("text", texts[i], *open_.run.tokenizer())}));
  }

  const RunFolder& run() const { return open_.run; }

  // 200 tokens, 1340 tokens/s
  std::string speed() const {
    return format_message("{} tokens, {:.0f} tokens/s\n", {tokens_, seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0.0});
  }

 private:
  std::vector<Written> write(const std::string& prompt, const std::function<void(const std::string&)>& show) {
    const double started = seconds_now();
    auto texts = write_texts(open_, prompt, options_.writing, show);
    seconds_ += seconds_now() - started;
    for (const Written& each : texts) tokens_ += std::ssize(each.ids);
    return texts;
  }

  const Options& options_;
  OpenModel open_;
  int64_t tokens_ = 0;
  double seconds_ = 0;
};

// A line of stdin is a prompt of its own; an error is printed where it cannot be continued, and the next line is waited for.
void answer_lines(Generator& generator) {
  const bool asks = ::isatty(STDIN_FILENO);
  const auto ask = [&] {
    if (asks) print("> ");
  };
  ask();
  int64_t number = 0;
  for (std::string line; next_line(std::cin, line, number); ask()) {
    if (line.empty()) continue;
    try {
      generator.print_texts(line);
    } catch (const Error& error) {
      std::fprintf(stderr, "ricci-generate: %s\n", error.what());
    }
  }
}

void answer_json_lines(Generator& generator) {
  int64_t number = 0;
  for (std::string line; next_line(std::cin, line, number);) {
    if (is_blank(line)) continue;
    try {
      const JsonValue value = parse_json(line, "JSON");
      if (!value["prompt"].is_text()) fail("expected an object with a text \"prompt\"");
      generator.print_json(value["prompt"].text());
    } catch (const Error& error) {
      fail("line {}: {}", {number, error.what()});
    }
  }
}

// Conversations by the template of the run, or by another one.
int talk(const Options& options) {
  const OpenModel open = open_writer(options);
  const TrainConfig& config = open.run.config();
  if (!has_chat(config) && options.form.empty())
    fail("--chat: {} did not learn conversations; --template names the template of a model that did elsewhere", {options.run});
  const ChatTokenizer chat(open.run.tokenizer(), chat_template(options.form.empty() ? config.chat : options.form));
  if (options.json_lines) answer_messages(open, chat, options.writing, std::cin);
  else converse(open, chat, options.writing, options.system);
  return 0;
}

int generate_text(Options& options) {
  check(options.writing.sampling);
  if (options.json_lines && !options.system.empty()) fail("--system: with --jsonl the messages have it");
  if (options.interactive && options.json_lines) fail("--interactive: shows texts, and --jsonl writes lines of JSON");
  if (options.interactive && options.prompt_given) fail("--interactive: the prompts are lines of stdin, not --prompt or --prompt-file");
  for (std::string& stop : options.writing.stops) stop = unescape(stop, "--stop");
  const StopStrings checked(options.writing.stops);
  if (options.chat) return talk(options);
  const bool reads_prompts = options.interactive || (options.json_lines && !options.prompt_given);
  Generator generator(options);
  const std::string prompt =
      reads_prompts ? "" : given_text(options.prompt, options.prompt_file, "--prompt", generator.run().config().encoding);
  if (options.interactive) answer_lines(generator);
  else if (reads_prompts) answer_json_lines(generator);
  else if (options.json_lines) generator.print_json(prompt);
  else generator.print_texts(prompt);
  if (options.speed || ::isatty(STDERR_FILENO)) std::fputs(generator.speed().c_str(), stderr);
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("run", options.run, "Folder of a run, such as runs/quickstart")->required();
  const auto given = [&](const std::string&) { options.prompt_given = true; };
  CLI::Option* const text =
      app.add_option("--prompt", options.prompt, "Text to continue, with escapes such as \\n, \\t and \\u00e9; -: all of stdin")
          ->each(given);
  app.add_option("--prompt-file", options.prompt_file, "The text is in this file; -: stdin")->each(given)->excludes(text);
  app.add_option("--tokens", options.writing.tokens, "Tokens to write")->check(at_least_zero)->capture_default_str();
  app.add_option("--samples", options.writing.samples, "Texts to write at once, each with draws of its own")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--stop", options.writing.stops, "A text ends before this one, with escapes; may be given several times")
      ->allow_extra_args(false);
  app.add_flag("--jsonl", options.json_lines, "Lines {\"prompt\": ...} on stdin, or the one --prompt, to a line of JSON for each text");
  app.add_flag("--log-probabilities", options.writing.log_probabilities,
      "Print the log-probability of each token that was written, by the model alone: before temperature, top-k, top-p and min-p");
  app.add_flag("--interactive", options.interactive, "Each line of stdin is a prompt");
  app.add_flag(
      "--speed", options.speed, "Print at the end how many tokens a second were written, on stderr; on a terminal it is printed anyway");
  CLI::Option* const chat = app.add_flag("--chat", options.chat,
      "A conversation: each line of stdin is a message of the user, and the model answers. With --jsonl: lines {\"messages\": [...]} on "
      "stdin "
      "to lines {\"answer\": ...}");
  for (const char* other : {"--prompt", "--prompt-file", "--interactive", "--samples", "--speed"}) chat->excludes(app.get_option(other));
  app.add_option("--system", options.system, "With --chat: a system message before the conversation")->needs(chat);
  app.add_option("--template", options.form,
         "With --chat: how a conversation is written, in place of the run's own: chatml, llama3, or six strings, as the key chat has "
         "them")
      ->needs(chat);
  add_field_options(app, options.writing.sampling);
  add_model_options(app, options.model, "Tokens that the next one is drawn from");
}

}  // namespace

int main(int argc, char** argv) {
  return run_app<Options>(argc, argv, {"ricci-generate", "Continues prompts with a trained model."}, add_options, generate_text);
}
