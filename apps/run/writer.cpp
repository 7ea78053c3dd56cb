#include "apps/run/writer.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cstdio>
#include <iostream>

#include "apps/terminal/streams.h"
#include "apps/terminal/table.h"
#include "core/cpu/parallel.h"
#include "core/files/file.h"
#include "core/json/value.h"

namespace ricci::apps {
namespace {

constexpr JsonLimits kLineLimits = {.bytes = int64_t{1} << 30, .depth = 64, .values = int64_t{1} << 28};

// Number of hexadecimal digits after \x, \u and \U; 0 for another letter.
size_t digits_after(char letter) {
  if (letter == 'x') return 2;
  if (letter == 'u') return 4;
  return letter == 'U' ? 8 : 0;
}

// The character of the escape whose backslash is at byte `position`, which moves past it.
std::string read_escape(std::string_view text, size_t& position, const char* option) {
  const size_t begin = position;
  if (begin + 1 == text.size()) fail("{}: a backslash at the end; two of them mean one", {option});
  const char letter = text[begin + 1];
  const size_t digits = digits_after(letter);
  const std::string escape(text.substr(begin, 2 + digits));
  if (escape.size() < 2 + digits || escape.find_first_not_of("0123456789abcdefABCDEF", 2) != escape.npos)
    fail("{}: \\{} at byte {} needs {} hexadecimal digits", {option, std::string(1, letter), begin, digits});
  position += escape.size();
  try {
    // yaml-cpp makes bytes of these two that are not UTF-8.
    if (letter == 'N') return "\xc2\x85";
    if (letter == '_') return "\xc2\xa0";
    if (letter != '\'' && letter != '\n') return YAML::Load('"' + escape + '"').Scalar();  // these two are not escapes of characters
  } catch (const YAML::Exception&) {
    if (digits) fail("{}: {} at byte {} is no character", {option, escape, begin});
  }
  fail("{}: unknown escape '\\{}' at byte {}; two backslashes mean one", {option, one_line(escape.substr(1)), begin});
}

std::string quoted(const std::string& text) { return quoted_json(replace_invalid_utf8(text), true); }

std::string list_json(const std::vector<int64_t>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ", ")); }

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

std::vector<int64_t> ids_of(const Tokenizer& tokenizer, const std::string& text, bool with_first) {
  std::vector<int64_t> ids;
  if (const int64_t first = tokenizer.marks().first; with_first && first >= 0) ids.push_back(first);
  tokenizer.append_ids(text, 0, ids);
  tokenizer.append_end(text, ids);
  return ids;
}

std::string encode_json(const Tokenizer& tokenizer, const std::string& line, bool with_first) {
  const JsonValue value = parse_json(line, "JSON", kLineLimits);
  if (!value["text"].is_text()) fail("expected an object with a text \"text\"");
  return R"({"ids": )" + list_json(ids_of(tokenizer, value["text"].text(), with_first)) + "}";
}

std::string decode_json(const Tokenizer& tokenizer, const std::string& line) {
  const JsonValue value = parse_json(line, "JSON", kLineLimits);
  if (!value["ids"].is_list()) fail("expected an object with a list \"ids\"");
  std::vector<int64_t> ids;
  for (const JsonValue& id : value["ids"].items()) {
    if (!id.is_integer()) fail("\"ids\" holds what is no integer, at index {}", {ids.size()});
    ids.push_back(id.integer());
  }
  // In ASCII, because some programs take U+2028 and the like for the end of a line.
  return R"({"text": )" + quoted(tokenizer.decode(ids)) + "}";
}

std::string chat_json(const ChatEncoder& chat, const std::string& line) {
  const auto [ids, counts] = chat.encode(line);
  return R"({"ids": )" + list_json(ids) + R"(, "answers": )" + list_json({counts.begin(), counts.end()}) + "}";
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

std::string json_members(const char* name, const Written& written, const Tokenizer& tokenizer) {
  std::string tokens;
  for (size_t i = 0; i < written.log_probabilities.size(); ++i)
    tokens += format_message("{}{{\"token\": {}, \"id\": {}, \"log_probability\": {}}}",
        {i ? ", " : "", quoted(tokenizer.decode({&written.ids[i], 1})), written.ids[i], json_text(written.log_probabilities[i])});
  return format_message(
      "\"{}\": {}, \"tokens\": {}, \"end\": \"{}\"{}", {name, quoted(written.text), written.ids.size(), written.stopped ? "stop" : "length",
                                                           tokens.empty() ? "" : ", \"log_probabilities\": [" + tokens + "]"});
}

std::string log_probability_lines(const Written& written, const Tokenizer& tokenizer) {
  ResultTable table{
      {{.heading = "token", .left = true}, {.heading = "log-probability", .format = "{:.4f}"}, {.heading = "sum", .format = "{:.4f}"}}};
  double sum = 0;
  for (size_t i = 0; i < written.log_probabilities.size(); ++i) {
    sum += written.log_probabilities[i];
    table.add_row({quoted(tokenizer.decode({&written.ids[i], 1})), written.log_probabilities[i], sum});
  }
  return text_of(table) + "\n";
}

}  // namespace ricci::apps
