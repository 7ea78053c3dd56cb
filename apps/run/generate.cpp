// ricci generate: continues prompts with a trained model, or holds a conversation with it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/run/commands.h"
#include "apps/run/options.h"
#include "apps/run/writer.h"
#include "apps/terminal/streams.h"
#include "core/cpu/available.h"
#include "core/error.h"
#include "data/tokenizers/chat.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr const char* kSeparator = "---------------\n";  // between the texts of --samples

struct Options {
  ModelOptions model;
  WritingOptions writing;
  std::string run, prompt = "\\n", prompt_file, system;
  std::vector<std::string> form;
  bool prompt_given = false, json_lines = false, chat = false;
};

using Show = std::function<void(const std::string& piece)>;

void show_nothing(const std::string&) {}

void print(const std::string& text) {
  const std::string safe = for_stdout(text);
  std::fwrite(safe.data(), 1, safe.size(), stdout);
  std::fflush(stdout);
}

// Writes a JSON line in ASCII: some programs read U+2028 as a line end.
std::string json_line(const Json& members, Json results, const char* name, const Written& written) {
  results.update({{name, written.text}, {"tokens", written.ids.size()}, {"end", written.stopped ? "stop" : "length"}});
  return to_text(with_results(members, results), -1, true);
}

// Opens the run. Error: the model's family writes no text.
OpenModel open_writer(const Options& options) {
  OpenModel open = open_model(options.run, options.model);
  const ModelConfig& config = open.model.config();
  if (config.traits().writes_text()) return open;
  const char* const advice =
      is_classifier(open.run.config()) ? "ricci predict prints the class of a text" : "ricci analyze completions shows what it predicts";
  fail("{}: a {} model writes no text; {}", {open.run.path(), name_of(config.family), advice});
}

Continuation start(const OpenModel& open, const WritingOptions& options) {
  return {open.model, options.samples, options.sampling.among(open.run.tokenizer()->vocab_size()), open.device, open.context};
}

// ---- Prompts
class Generator {
 public:
  Generator(const OpenModel& open, const WritingOptions& options) : open_(open), options_(options) {}

  // Prints a single text while it is written, but multiple --samples only at the end.
  void print_texts(const std::string& prompt) {
    if (options_.samples == 1) {
      write(prompt, print);
      return print("\n");
    }
    std::string all;
    for (const Written& each : write(prompt, show_nothing)) all += (all.empty() ? "" : kSeparator) + prompt + each.text + "\n";
    print(all);
  }

  // A JSON line for each text, with the members of the request.
  std::string json_lines(const std::string& prompt, const Json& members = Json::object()) {
    std::string lines;
    int64_t sample = 0;
    for (const Written& each : write(prompt, show_nothing)) {
      lines += (sample ? "\n" : "") + json_line(members, {{"prompt", prompt}, {"sample", sample}}, "text", each);
      ++sample;
    }
    return lines;
  }

  std::string speed() const {
    return format_message("{} tokens, {:.0f} tokens/s\n", {tokens_, seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0});
  }

 private:
  // `show` gets the prompt, then each part of the first text.
  std::vector<Written> write(const std::string& prompt, const Show& show) {
    const double started = seconds_now();
    const Tokenizer& tokenizer = *open_.run.tokenizer();
    const std::vector<int64_t> ids = tokenizer.encode_start(prompt),
                               ends = with_answer_end(tokenizer.marks().ends, open_.run.config(), tokenizer);
    if (ids.empty()) fail("the prompt '{}' has no tokens for the {} tokenizer", {one_line(prompt), tokenizer.name()});
    show(prompt);
    Continuation texts = start(open_, options_);
    texts.append(ids);
    const auto is_end = [&](int64_t token) { return std::find(ends.begin(), ends.end(), token) != ends.end(); };
    auto written = continue_texts(texts, tokenizer.state_after(ids), tokenizer, options_, is_end, show);
    seconds_ += seconds_now() - started;
    for (const Written& each : written) tokens_ += std::ssize(each.ids);
    return written;
  }

  const OpenModel& open_;
  const WritingOptions& options_;
  int64_t tokens_ = 0;
  double seconds_ = 0;
};

void continue_prompts(const Options& options, const OpenModel& open) {
  if (const std::string note = open.run.context_note(open.context); !note.empty())
    std::fputs(format_message("context {}{}\n", {open.context, note}).c_str(), stderr);
  Generator generator(open, options.writing);
  if (options.json_lines && !options.prompt_given) {
    answer_lines([&](const std::string& line) {
      const Json members = parse_json(line, "JSON");
      const auto prompt = as<std::string>(member(members, "prompt"));
      if (!prompt) fail("expected an object with a string \"prompt\"");
      return generator.json_lines(*prompt, members);
    });
  } else {
    const std::string prompt = given_text(options.prompt, options.prompt_file, "--prompt", open.run.config().encoding);
    if (options.json_lines) print(generator.json_lines(prompt) + "\n");
    else generator.print_texts(prompt);
  }
  if (::isatty(STDERR_FILENO)) std::fputs(generator.speed().c_str(), stderr);
}

// ---- Conversations
// Keeps the cache between messages, so only new messages are computed.
class Conversation {
 public:
  Conversation(const OpenModel& open, const ChatEncoder& chat, const WritingOptions& options)
      : tokenizer_(*open.run.tokenizer()), chat_(chat), options_(options), text_(start(open, options)), before_(chat.start()) {}

  // Adds the messages and writes the answer, up to the template's end, a stop string, or options.tokens.
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
  std::vector<int64_t> before_;  // the token ids before the next message
};

// Each line of stdin is a user message or, with --jsonl, a conversation.
void converse(const Options& options, const OpenModel& open) {
  const TrainConfig& config = open.run.config();
  if (!has_chat(config) && options.form.empty())
    fail("--chat: {} has not learned conversations; if its model learned them elsewhere, name its chat template with --template",
        {options.run});
  const ChatEncoder chat(open.run.tokenizer(), chat_template(options.form.empty() ? config.chat : options.form));
  if (options.json_lines)
    return answer_lines([&](const std::string& line) {
      const Written answer = Conversation(open, chat, options.writing).answer(read_messages(line), show_nothing);
      return json_line(parse_json(line, "JSON", {.depth = 64}), Json::object(), "answer", answer);
    });
  Conversation conversation(open, chat, options.writing);
  std::vector<Message> messages;
  if (!options.system.empty()) messages.push_back({ChatRole::system, options.system});
  for_each_typed_line([&](const std::string& line) {
    check_utf8("stdin", line, 0);
    messages.push_back({ChatRole::user, line});
    conversation.answer(messages, print);
    messages.clear();
    print("\n");
  });
}

int generate_text(Options& options) {
  check(options.writing.sampling);
  if (options.json_lines && !options.system.empty())
    fail("--system: is not supported with --jsonl; include the system message in \"messages\"");
  for (std::string& stop : options.writing.stops) stop = unescape(stop, "--stop");
  const StopStrings checked(options.writing.stops);
  const OpenModel open = open_writer(options);
  if (options.chat) converse(options, open);
  else continue_prompts(options, open);
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("run", options.run, kWeightsHelp)->required();
  const auto given = [&](const std::string&) { options.prompt_given = true; };
  CLI::Option* const text =
      app.add_option("--prompt", options.prompt, "Text to continue, with the escapes \\n, \\t and \\\\ (-: stdin)")->each(given);
  app.add_option("--prompt-file", options.prompt_file, "File with the text to continue (-: stdin)")->each(given)->excludes(text);
  app.add_option("--tokens", options.writing.tokens, "Number of tokens to write")->check(at_least_zero)->capture_default_str();
  app.add_option("--samples", options.writing.samples, "Number of texts to write together, each with its own random numbers")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--stop", options.writing.stops, "Stop before this string (escapes allowed); repeatable")->allow_extra_args(false);
  app.add_flag("--jsonl", options.json_lines, "Write a JSON line for each text; prompts are lines {\"prompt\": ...} on stdin, or --prompt");
  CLI::Option* const chat = app.add_flag("--chat", options.chat,
      "Answer each line of stdin; with --jsonl, each line {\"messages\": [...]} is answered by a line {\"answer\": ...}");
  for (const char* other : {"--prompt", "--prompt-file", "--samples"}) chat->excludes(app.get_option(other));
  app.add_option("--system", options.system, "A system message at the start of the conversation")->needs(chat);
  keep_brackets(app.add_option("--template", options.form,
                       "Chat template: chatml, llama3, or six strings as for the key `chat`; by default the run's")
                    ->needs(chat));
  add_field_options(app, options.writing.sampling);
  add_model_options(app, options.model, "Tokens of context for the next token");
}

}  // namespace

const Command ricci::apps::generate_command{{.name = "ricci generate",
                                                .summary = "Continues prompts with a trained model.",
                                                .examples = "ricci generate quickstart --prompt 'struct Config {\\n' --temperature 0.8\n"
                                                            "ricci generate quickstart --jsonl <prompts.jsonl >texts.jsonl"},
    with_options<Options, add_options, generate_text>};
