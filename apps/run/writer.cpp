#include "apps/run/writer.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "apps/terminal/streams.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

// A text that is being written.
struct Writing {
  DecodeState decoding;
  StopStrings stops;
  Written written = {};

  // Adds the part of `piece` that is certain, and returns this part.
  std::string add(const std::string& piece, bool is_last = false) {
    const std::string text = stops.next(piece) + (is_last ? stops.end() : "");
    written.text += text;
    written.stopped |= stops.found();
    return text;
  }
};

}  // namespace

std::string unescape(std::string_view text, const char* option) {
  constexpr std::string_view letters = "nt\"\\", characters = "\n\t\"\\";
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    const std::string_view letter = text.substr(i + 1, 1);
    const size_t known = letters.find(letter);
    if (letter.empty() || known == letters.npos)
      fail("{}: unknown escape '\\{}' at byte {}; write \\\\ for a backslash", {option, one_line(std::string(letter)), i});
    result += characters[known];
    ++i;
  }
  return result;
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

void answer_lines(const std::function<std::string(const std::string& line)>& answer) {
  int64_t number = 0;
  std::string first_error;
  for (std::string line, text; next_line(std::cin, line, number);) {
    if (is_blank(line)) continue;
    try {
      text = answer(line) + "\n";
    } catch (const Error& error) {
      const std::string fault = format_message("line {}: {}", {number, error.what()});
      if (first_error.empty()) first_error = fault;
      text = to_text({{"error", fault}}, -1, true) + "\n";
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) != 0) fail("cannot write to stdout: {}", {system_reason()});
  }
  if (std::cin.bad()) fail("cannot read from stdin: {}", {system_reason()});
  if (!first_error.empty()) fail("{}", {first_error});
}

Json with_results(const Json& members, const Json& results) {
  Json all = Json::object();
  for (const auto& [name, value] : members.items()) {
    const bool is_taken = (results.contains(name) || name == "error") && member(results, name) != value;
    all[(is_taken ? "input_" : "") + name] = value;
  }
  all.update(results);
  return all;
}

std::vector<Written> continue_texts(Continuation& texts, const DecodeState& state, const Tokenizer& tokenizer,
    const WritingOptions& options, const std::function<bool(int64_t token)>& ends,
    const std::function<void(const std::string& piece)>& show) {
  std::vector<Writing> writings(static_cast<size_t>(options.samples), {state, StopStrings(options.stops)});
  const auto show_first = [&](size_t sample, const std::string& text) {
    if (sample == 0 && !text.empty()) show(text);
  };
  texts.draw(options.tokens, [&](int64_t sample, int64_t token, std::span<const double>) {
    Writing& writing = writings[static_cast<size_t>(sample)];
    writing.written.ids.push_back(token);
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

}  // namespace ricci::apps
