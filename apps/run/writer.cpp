#include "apps/run/writer.h"

#include <cstdio>
#include <iostream>

#include "apps/terminal/streams.h"
#include "apps/terminal/table.h"
#include "core/cpu/parallel.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

// The character of the escape whose backslash is at byte `position`, which moves past it.
std::string read_escape(std::string_view text, size_t& position, const char* option) {
  constexpr std::string_view letters = "0abtnvfre \"/\\", meant("\0\a\b\t\n\v\f\r\x1b \"/\\", 13);
  const size_t begin = position;
  if (begin + 1 == text.size()) fail("{}: a backslash at the end; two of them mean one", {option});
  const char letter = text[begin + 1];
  const size_t kind = std::string_view("xuU").find(letter), digits = kind < 3 ? size_t{2} << kind : 0;
  const std::string escape(text.substr(begin, 2 + digits));
  position += escape.size();
  if (const size_t known = letters.find(letter); known != letters.npos) return {meant[known]};
  if (digits == 0) fail("{}: unknown escape '\\{}' at byte {}; two backslashes mean one", {option, one_line(escape.substr(1)), begin});
  if (escape.size() < 2 + digits || escape.find_first_not_of("0123456789abcdefABCDEF", 2) != escape.npos)
    fail("{}: \\{} at byte {} needs {} hexadecimal digits", {option, std::string(1, letter), begin, digits});
  const auto code = static_cast<char32_t>(std::stoul(escape.substr(2), nullptr, 16));
  if (code > kLargestCodePoint || (code >= 0xd800 && code < 0xe000)) fail("{}: {} at byte {} is no character", {option, escape, begin});
  std::string character;
  append_utf8(code, character);
  return character;
}

// One text while it is made.
struct Writing {
  DecodeState decoding;
  StopStrings stops;
  Written written = {};

  // Adds the piece, as far as it is certain, and returns what was added.
  std::string add(const std::string& piece, bool is_last = false) {
    const std::string text = stops.next(piece) + (is_last ? stops.end() : "");
    written.text += text;
    written.stopped |= stops.met();
    return text;
  }
};

}  // namespace

std::string unescape(std::string_view text, const char* option) {
  std::string meant;
  for (size_t position = 0; position < text.size();) {
    if (text[position] == '\\') meant += read_escape(text, position, option);
    else meant += text[position++];
  }
  return meant;
}

std::string read_decoded(const std::string& file, Encoding encoding) {
  const std::string name = file == "-" ? "stdin" : file;
  std::string decoded;
  TextDecoder decoder(encoding);
  decoder.append(file == "-" ? read_stdin() : read_text(file), name, decoded);
  decoder.finish(name, decoded);
  return decoded;
}

std::string for_stdout(const std::string& text) {
  if (!::isatty(STDOUT_FILENO)) return text;
  std::string safe;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of("\n\t", begin), text.size());
    safe += one_line(text.substr(begin, end - begin), text.size());
    if (end < text.size()) safe += text[end];
    begin = end + 1;
  }
  return safe;
}

std::string given_text(const std::string& text, const std::string& file, const char* option, Encoding encoding) {
  if (file.empty() && text != "-") return unescape(text, option);
  return read_decoded(file.empty() ? "-" : file, encoding == Encoding::bytes ? Encoding::bytes : Encoding::utf8);
}

void for_each_typed_line(const std::function<void(const std::string& line)>& use) {
  int64_t number = 0;
  std::string line;
  do {
    if (!line.empty()) use(line);
    if (::isatty(STDIN_FILENO)) std::fputs("> ", stdout);
    std::fflush(stdout);
  } while (next_line(std::cin, line, number));
}

void answer_lines(const std::function<std::string(const std::string& line)>& answer, int64_t most) {
  struct Answer {
    int64_t number;
    std::string text, error;  // the text is the line, and then its answer
  };
  std::ios::sync_with_stdio(false);  // otherwise in_avail() does not know how much can be read without waiting
  int64_t number = 0;
  for (std::string line; std::cin;) {
    std::vector<Answer> lines;
    while (next_line(std::cin, line, number)) {
      if (!is_blank(line)) lines.push_back({number, line, ""});
      if (std::ssize(lines) == most || std::cin.rdbuf()->in_avail() <= 0) break;
    }
    parallel_for(std::ssize(lines), 16, [&](int64_t begin, int64_t end) {
      for (Answer& each : std::span(lines).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin))) try {
          each.text = answer(each.text) + "\n";
        } catch (const Error& error) {
          each.error = error.what();
        }
    });
    for (const Answer& each : lines) {
      if (!each.error.empty()) fail("line {}: {}", {each.number, each.error});
      std::fwrite(each.text.data(), 1, each.text.size(), stdout);
    }
    if (std::fflush(stdout) != 0) fail("cannot write to stdout: {}", {system_reason()});
  }
  if (std::cin.bad()) fail("cannot read from stdin: {}", {system_reason()});
}

std::vector<Written> continue_texts(Continuation& texts, const DecodeState& state, const Tokenizer& tokenizer,
    const WritingOptions& options, const std::function<bool(int64_t token)>& ends,
    const std::function<void(const std::string& piece)>& show) {
  std::vector<Writing> writings(static_cast<size_t>(options.samples), {state, StopStrings(options.stops)});
  const auto show_first = [&](size_t sample, const std::string& text) {
    if (sample == 0 && !text.empty()) show(text);
  };
  texts.draw(options.tokens, [&](int64_t sample, int64_t token, std::span<const double> logits_v) {
    Writing& writing = writings[static_cast<size_t>(sample)];
    writing.written.ids.push_back(token);
    if (options.log_probabilities) writing.written.log_probabilities.push_back(log_probability(logits_v, token));
    writing.written.stopped = ends(token);
    if (!writing.written.stopped) show_first(static_cast<size_t>(sample), writing.add(tokenizer.decode_next(token, writing.decoding)));
    return !writing.written.stopped;
  });
  std::vector<Written> all;
  for (Writing& writing : writings) {
    show_first(all.size(), writing.add(tokenizer.decode_end(writing.decoding), true));
    all.push_back(writing.written);
  }
  return all;
}

void add_members(Json& line, const char* name, const Written& written, const Tokenizer& tokenizer) {
  line.update({{name, written.text}, {"tokens", written.ids.size()}, {"end", written.stopped ? "stop" : "length"}});
  for (size_t i = 0; i < written.log_probabilities.size(); ++i)
    line["log_probabilities"].push_back(
        {{"token", tokenizer.decode({&written.ids[i], 1})}, {"id", written.ids[i]}, {"log_probability", written.log_probabilities[i]}});
}

std::string log_probability_lines(const Written& written, const Tokenizer& tokenizer) {
  ResultTable table{
      {{.heading = "token", .left = true}, {.heading = "log-probability", .format = "{:.4f}"}, {.heading = "sum", .format = "{:.4f}"}}};
  double sum = 0;
  for (size_t i = 0; i < written.log_probabilities.size(); ++i) {
    sum += written.log_probabilities[i];
    table.add_row({quoted_json(tokenizer.decode({&written.ids[i], 1}), true), written.log_probabilities[i], sum});
  }
  return text_of(table) + "\n";
}

}  // namespace ricci::apps
