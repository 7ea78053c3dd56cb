// ricci-generate: continues prompts with a trained model.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/run/options.h"
#include "apps/run/writer.h"
#include "apps/terminal/streams.h"
#include "core/cpu/available.h"
#include "core/error.h"
#include "data/tokenizers/chat.h"

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

using Show = std::function<void(const std::string& piece)>;

void print(const std::string& text) {
  const std::string shown = for_stdout(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
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

Continuation start(const OpenModel& open, const WritingOptions& options) {
  return {open.model, options.samples, options.sampling.among(open.run.tokenizer()->vocab_size()), open.device, open.context};
}

// Continues prompts, and knows how long it took.
struct Generator {
  const OpenModel& open;
  const WritingOptions& options;
  int64_t tokens = 0;
  double seconds = 0;

  // `show` is given the prompt first, and then each piece of the first text.
  std::vector<Written> write(const std::string& prompt, const Show& show) {
    const double started = seconds_now();
    const Tokenizer& tokenizer = *open.run.tokenizer();
    const std::vector<int64_t> ids = tokenizer.encode_start(prompt),
                               ends = with_answer_end(tokenizer.marks().ends, open.run.config(), tokenizer);
    if (ids.empty()) fail("the prompt '{}' has no tokens for the {} tokenizer", {one_line(prompt), tokenizer.name()});
    show(prompt);
    Continuation texts = start(open, options);
    texts.append(ids);
    const auto is_end = [&](int64_t token) { return std::find(ends.begin(), ends.end(), token) != ends.end(); };
    auto written = continue_texts(texts, tokenizer.state_after(ids), tokenizer, options, is_end, show);
    seconds += seconds_now() - started;
    for (const Written& each : written) tokens += std::ssize(each.ids);
    return written;
  }

  // One text as it is made, several with a line between them when all are there.
  void print_texts(const std::string& prompt) {
    const bool one = options.samples == 1;
    const auto texts = write(
        prompt, one ? print : [](const std::string&) {});
    if (one) print("\n");
    for (const Written& each : texts) {
      if (!one) print((&each == texts.data() ? "" : kBetween) + prompt + each.text + "\n");
      if (options.log_probabilities) print(log_probability_lines(each, *open.run.tokenizer()));
    }
  }

  // A line of JSON for each text.
  std::string json_of(const std::string& prompt) {
    const auto texts = write(prompt, [](const std::string&) {});
    std::string lines;
    for (size_t i = 0; i < texts.size(); ++i) {
      Json line = {{"prompt", prompt}, {"sample", i}};
      add_members(line, "text", texts[i], *open.run.tokenizer());
      lines += (i ? "\n" : "") + to_text(line, -1, true);
    }
    return lines;
  }
};

// A conversation. The cache is kept between the turns, because a turn then reads only the new messages.
class Talk {
 public:
  Talk(const OpenModel& open, const ChatEncoder& chat, const WritingOptions& options)
      : tokenizer_(*open.run.tokenizer()), chat_(chat), options_(options), text_(start(open, options)), before_(chat.start()) {}

  // Adds the messages, and the answer of the model, which ends where the template ends it, before a stop string, or after options.tokens.
  Written answer(const std::vector<Message>& messages, const Show& show) {
    EncodedDocument turn{before_};
    for (const Message& message : messages) chat_.append_message(message, turn);
    turn.ids.insert(turn.ids.end(), chat_.answer().begin(), chat_.answer().end());
    text_.append(turn.ids);
    const auto ends = [&](int64_t token) { return chat_.ends_answer(token); };
    Written written = continue_texts(text_, tokenizer_.state_after(chat_.answer()), tokenizer_, options_, ends, show)[0];
    before_ = chat_.rest();
    if (written.ids.empty() || written.ids.back() != chat_.end()) before_.insert(before_.begin(), chat_.end());
    return written;
  }

 private:
  const Tokenizer& tokenizer_;
  const ChatEncoder& chat_;
  const WritingOptions& options_;
  Continuation text_;
  std::vector<int64_t> before_;  // ids that come before the next message
};

// Conversations by the template of the run, or by another one: each line of stdin is a message of the user, or with --jsonl a conversation.
void talk(const Options& options, const OpenModel& open) {
  const TrainConfig& config = open.run.config();
  if (!has_chat(config) && options.form.empty())
    fail("--chat: {} did not learn conversations; --template names the template of a model that did elsewhere", {options.run});
  const Tokenizer& tokenizer = *open.run.tokenizer();
  const ChatEncoder chat(open.run.tokenizer(), chat_template(options.form.empty() ? config.chat : options.form));
  const auto answer = [&](const std::string& line) {
    const Written written = Talk(open, chat, options.writing).answer(messages_of(line), [](const std::string&) {});
    Json answer;
    add_members(answer, "answer", written, tokenizer);
    return to_text(answer, -1, true);
  };
  if (options.json_lines) return answer_lines(answer, 1);
  Talk talk(open, chat, options.writing);
  std::vector<Message> messages;
  if (!options.system.empty()) messages.push_back({Speaker::system, options.system});
  for_each_typed_line([&](const std::string& line) {
    check_utf8("stdin", line, 0);
    messages.push_back({Speaker::user, line});
    const Written written = talk.answer(messages, print);
    messages.clear();
    print("\n");
    if (options.writing.log_probabilities) print(log_probability_lines(written, tokenizer));
  });
}

void continue_prompts(const Options& options, const OpenModel& open) {
  if (const std::string note = open.run.context_note(open.context); !note.empty())
    std::fputs(format_message("context {}{}\n", {open.context, note}).c_str(), stderr);
  Generator generator{open, options.writing};
  if (options.interactive) {
    for_each_typed_line([&](const std::string& line) {
      try {
        generator.print_texts(line);
      } catch (const Error& error) {  // the next line may have a text
        std::fprintf(stderr, "ricci-generate: %s\n", error.what());
      }
    });
  } else if (options.json_lines && !options.prompt_given) {
    const auto answer = [&](const std::string& line) {
      const auto prompt = as<std::string>(member(parse_json(line, "JSON"), "prompt"));
      if (!prompt) fail("expected an object with a text \"prompt\"");
      return generator.json_of(*prompt);
    };
    answer_lines(answer, 1);
  } else {
    const std::string prompt = given_text(options.prompt, options.prompt_file, "--prompt", open.run.config().encoding);
    if (options.json_lines) print(generator.json_of(prompt) + "\n");
    else generator.print_texts(prompt);
  }
  const double rate = generator.seconds > 0 ? static_cast<double>(generator.tokens) / generator.seconds : 0;
  if (options.speed || ::isatty(STDERR_FILENO))
    std::fputs(format_message("{} tokens, {:.0f} tokens/s\n", {generator.tokens, rate}).c_str(), stderr);
}

int generate_text(Options& options) {
  check(options.writing.sampling);
  if (options.json_lines && !options.system.empty()) fail("--system: with --jsonl the messages have it");
  if (options.interactive && options.json_lines) fail("--interactive: shows texts, and --jsonl writes lines of JSON");
  if (options.interactive && options.prompt_given) fail("--interactive: the prompts are lines of stdin, not --prompt or --prompt-file");
  for (std::string& stop : options.writing.stops) stop = unescape(stop, "--stop");
  const StopStrings checked(options.writing.stops);
  const OpenModel open = open_writer(options);
  if (options.chat) talk(options, open);
  else continue_prompts(options, open);
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("run", options.run, "A run by its folder or name: runs/quickstart or quickstart")->required();
  const auto given = [&](const std::string&) { options.prompt_given = true; };
  CLI::Option* const text =
      app.add_option("--prompt", options.prompt, "Text to continue, with escapes: \\n, \\t, \\u00e9; -: all of stdin")->each(given);
  app.add_option("--prompt-file", options.prompt_file, "File with the text to continue; -: stdin")->each(given)->excludes(text);
  app.add_option("--tokens", options.writing.tokens, "Tokens to write")->check(at_least_zero)->capture_default_str();
  app.add_option("--samples", options.writing.samples, "Texts to write at once, each with its own draws")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--stop", options.writing.stops, "A text ends before this one, with escapes; may be given multiple times")
      ->allow_extra_args(false);
  app.add_flag("--jsonl", options.json_lines, "Lines {\"prompt\": ...} on stdin, or --prompt, to a line of JSON for each text");
  app.add_flag("--log-probabilities", options.writing.log_probabilities,
      "Print the log-probability of each token, before temperature, top-k, top-p and min-p");
  app.add_flag("--interactive", options.interactive, "Each line of stdin is a prompt");
  app.add_flag("--speed", options.speed, "Print the tokens per second on stderr, as on a terminal");
  CLI::Option* const chat = app.add_flag(
      "--chat", options.chat, "The model answers each line of stdin; with --jsonl: lines {\"messages\": [...]} to lines {\"answer\": ...}");
  for (const char* other : {"--prompt", "--prompt-file", "--interactive", "--samples", "--speed"}) chat->excludes(app.get_option(other));
  app.add_option("--system", options.system, "A system message before the conversation")->needs(chat);
  keep_brackets(
      app.add_option("--template", options.form,
             "How a conversation is written: chatml, llama3, or six strings, as in the key chat; by default as the run learned it")
          ->needs(chat));
  add_field_options(app, options.writing.sampling);
  add_model_options(app, options.model, "Tokens that the next one is drawn from");
}

}  // namespace

int main(int argc, char** argv) {
  return run_app<Options>(argc, argv,
      {.name = "ricci-generate",
          .summary = "Continues prompts with a trained model.",
          .examples = "ricci-generate quickstart --prompt 'struct Config {\\n' --temperature 0.8\n"
                      "ricci-generate quickstart --jsonl <prompts.jsonl >texts.jsonl"},
      add_options, generate_text);
}
