#include "apps/run/talk.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "apps/terminal/streams.h"
#include "data/text/utf8.h"

namespace ricci::apps {

Talk::Talk(const OpenModel& open, const ChatTokenizer& chat, const WritingOptions& options)
    : tokenizer_(*open.run.tokenizer()),
      chat_(chat),
      options_(options),
      text_(open.model, 1, options.sampling.among(tokenizer_.vocab_size()), open.device, open.context),
      before_(chat.start()) {}

Written Talk::answer(std::span<const Message> messages, const std::function<void(const std::string& piece)>& show) {
  std::vector<int64_t> ids = before_;
  for (const Message& message : messages) chat_.append_message(message, ids);
  for (int64_t& id : ids) id %= tokenizer_.vocab_size();
  ids.insert(ids.end(), chat_.answer().begin(), chat_.answer().end());
  text_.append(ids);
  Writing writing{tokenizer_.state_after(chat_.answer()), StopStrings(options_.stops), options_.log_probabilities};
  const auto tell = [&](const std::string& piece) {
    if (!piece.empty()) show(piece);
  };
  bool has_end = false;
  text_.draw(options_.tokens, [&](int64_t, int64_t token, std::span<const double> logits_v) {
    has_end = token == chat_.end();
    tell(writing.next(tokenizer_, token, logits_v, chat_.ends_answer(token)));
    return !writing.written.stopped;
  });
  tell(writing.end(tokenizer_));
  before_ = chat_.rest();
  if (!has_end) before_.insert(before_.begin(), chat_.end());
  return writing.written;
}

void answer_messages(const OpenModel& open, const ChatTokenizer& chat, const WritingOptions& options, std::istream& lines) {
  int64_t number = 0;
  for (std::string line; next_line(lines, line, number);) {
    if (is_blank(line)) continue;
    try {
      const Written written = Talk(open, chat, options).answer(messages_of(line), [](const std::string&) {});
      std::printf("{%s}\n", json_members("answer", written, *open.run.tokenizer()).c_str());
      std::fflush(stdout);
    } catch (const Error& error) {
      fail("line {}: {}", {number, error.what()});
    }
  }
}

void converse(const OpenModel& open, const ChatTokenizer& chat, const WritingOptions& options, const std::string& system) {
  Talk talk(open, chat, options);
  std::vector<Message> messages;
  if (!system.empty()) messages.push_back({Speaker::system, system});
  const bool asks = ::isatty(STDIN_FILENO);
  const auto print = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  if (asks) print("> ");
  int64_t number = 0;
  for (std::string line; next_line(std::cin, line, number);) {
    if (!line.empty()) {
      check_utf8("stdin", line, 0);
      messages.push_back({Speaker::user, line});
      const Written written = talk.answer(messages, print);
      messages.clear();
      print("\n");
      if (options.log_probabilities) print(log_probability_lines(written, *open.run.tokenizer()));
    }
    if (asks) print("> ");
  }
}

}  // namespace ricci::apps
