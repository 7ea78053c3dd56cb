#include "apps/run/writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "apps/terminal/streams.h"
#include "apps/terminal/table.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/json/value.h"

namespace ricci::apps {
namespace {

// ---- Escapes
struct Escape {
  char letter;
  char32_t code;
};

// YAML 1.2.2, section 5.7.
constexpr std::array<Escape, 17> kLetters = {{{'0', 0}, {'a', 0x07}, {'b', 0x08}, {'t', 0x09}, {'n', 0x0a}, {'v', 0x0b}, {'f', 0x0c},
    {'r', 0x0d}, {'e', 0x1b}, {' ', 0x20}, {'"', 0x22}, {'/', 0x2f}, {'\\', 0x5c}, {'N', 0x85}, {'_', 0xa0}, {'L', 0x2028}, {'P', 0x2029}}};

// Number of hexadecimal digits after \x, \u and \U; 0 for another letter.
size_t digits_after(char letter) {
  if (letter == 'x') return 2;
  if (letter == 'u') return 4;
  return letter == 'U' ? 8 : 0;
}

bool is_character(uint32_t code) { return code <= kLargestCodePoint && (code < 0xd800 || code > 0xdfff); }

// The character of the escape whose backslash is at byte `position`, which moves past it.
char32_t read_escape(std::string_view text, size_t& position, const char* option) {
  const size_t begin = position++;
  if (position == text.size()) fail("{}: a backslash at the end; two of them mean one", {option});
  const char letter = text[position++];
  if (const size_t digits = digits_after(letter)) {
    uint32_t code = 0;
    const std::string_view number = text.substr(position, digits);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), code, 16);
    if (number.size() < digits || error != std::errc() || end != number.data() + digits)
      fail("{}: \\{} at byte {} needs {} hexadecimal digits", {option, std::string(1, letter), begin, digits});
    if (!is_character(code)) fail("{}: {} at byte {} is no character", {option, std::string(text.substr(begin, digits + 2)), begin});
    position += digits;
    return code;
  }
  const auto* const known = std::find_if(kLetters.begin(), kLetters.end(), [&](const Escape& each) { return each.letter == letter; });
  if (known == kLetters.end())
    fail("{}: unknown escape '\\{}' at byte {}; two backslashes mean one", {option, one_line(text.substr(begin + 1, 1)), begin});
  return known->code;
}

// Adds the piece to the text, as far as it is certain, and returns what was added.
std::string add(const std::string& piece, Writing& writing) {
  const std::string text = writing.stops.next(piece);
  writing.written.text += text;
  return text;
}

}  // namespace

std::string unescape(std::string_view text, const char* option) {
  std::string meant;
  for (size_t position = 0; position < text.size();) {
    if (text[position] == '\\') append_utf8(read_escape(text, position, option), meant);
    else meant += text[position++];
  }
  return meant;
}

std::string given_text(const std::string& text, const std::string& file, const char* option, Encoding encoding) {
  if (file.empty() && text != "-") return unescape(text, option);
  const bool is_stdin = file.empty() || file == "-";
  std::string decoded;
  TextDecoder decoder(encoding == Encoding::bytes ? Encoding::bytes : Encoding::utf8);
  decoder.append(is_stdin ? read_stdin() : read_text(file), is_stdin ? "stdin" : file, decoded);
  decoder.finish(is_stdin ? "stdin" : file, decoded);
  return decoded;
}

std::string Writing::next(const Tokenizer& tokenizer, int64_t token, std::span<const double> logits_v, bool ends) {
  written.ids.push_back(token);
  if (log_probabilities) written.log_probabilities.push_back(log_probability(logits_v, token));
  const std::string text = ends ? "" : add(tokenizer.decode_next(token, decoding), *this);
  written.stopped = ends || stops.met();
  return text;
}

std::string Writing::end(const Tokenizer& tokenizer) {
  const std::string text = add(tokenizer.decode_end(decoding), *this), held = stops.end();
  written.text += held;
  written.stopped |= stops.met();
  return text + held;
}

std::vector<int64_t> prompt_ids(const Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<int64_t> ids = tokenizer.encode_start(prompt);
  if (ids.empty()) fail("the prompt '{}' has no tokens for the {} tokenizer", {one_line(prompt), tokenizer.name()});
  return ids;
}

std::vector<Written> write_texts(const OpenModel& open, const std::string& prompt, const WritingOptions& options,
    const std::function<void(const std::string& piece)>& show) {
  check_samples(options.samples);
  const Tokenizer& tokenizer = *open.run.tokenizer();
  const std::vector<int64_t> ids = prompt_ids(tokenizer, prompt),
                             ends = with_answer_end(tokenizer.marks().ends, open.run.config(), tokenizer);
  std::vector<Writing> writings(
      static_cast<size_t>(options.samples), {tokenizer.state_after(ids), StopStrings(options.stops), options.log_probabilities});
  const auto use = [&](int64_t sample, int64_t token, std::span<const double> logits_v) {
    Writing& writing = writings[static_cast<size_t>(sample)];
    const std::string text = writing.next(tokenizer, token, logits_v, std::find(ends.begin(), ends.end(), token) != ends.end());
    if (sample == 0 && !text.empty()) show(text);
    return !writing.written.stopped;
  };
  generate_samples(
      open.model, ids, options.samples, options.tokens, options.sampling.among(tokenizer.vocab_size()), open.device, use, open.context);
  std::vector<Written> all;
  for (Writing& writing : writings) {
    const std::string last = writing.end(tokenizer);
    if (all.empty() && !last.empty()) show(last);
    all.push_back(writing.written);
  }
  return all;
}

std::string json_members(const char* name, const Written& written, const Tokenizer& tokenizer) {
  const auto quoted = [](const std::string& text) { return quoted_json(replace_invalid_utf8(text), true); };
  std::string tokens;
  for (size_t i = 0; i < written.log_probabilities.size(); ++i)
    tokens += (i ? ", " : R"(, "log_probabilities": [)") + (R"({"token": )" + quoted(tokenizer.decode({&written.ids[i], 1}))) +
              format_message(", \"id\": {}, \"log_probability\": ", {written.ids[i]}) + json_text(written.log_probabilities[i]) + "}";
  return quoted(name) + ": " + quoted(written.text) + R"(, "tokens": )" + std::to_string(written.ids.size()) + R"(, "end": ")" +
         (written.stopped ? "stop" : "length") + "\"" + tokens + (tokens.empty() ? "" : "]");
}

std::string log_probability_lines(const Written& written, const Tokenizer& tokenizer) {
  ResultTable table{
      {{.heading = "token", .left = true}, {.heading = "log-probability", .format = "{:.4f}"}, {.heading = "sum", .format = "{:.4f}"}}};
  double sum = 0;
  for (size_t i = 0; i < written.log_probabilities.size(); ++i) {
    sum += written.log_probabilities[i];
    table.add_row({quoted_json(replace_invalid_utf8(tokenizer.decode({&written.ids[i], 1})), true), written.log_probabilities[i], sum});
  }
  return text_of(table) + "\n";
}

}  // namespace ricci::apps
