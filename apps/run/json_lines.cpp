#include "apps/run/json_lines.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "apps/terminal/streams.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/json/value.h"
#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

constexpr JsonLimits kLineLimits = {.bytes = int64_t{1} << 30, .depth = 64, .values = int64_t{1} << 28};

void write_out(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) fail("cannot write to stdout: {}", {system_reason()});
}

// Appends what can be read now; false at the end.
bool read_some(std::string& buffer) {
  constexpr size_t block = 1 << 20;
  const size_t before = buffer.size();
  buffer.resize(before + block);
  ssize_t bytes = 0;
  do {
    bytes = ::read(STDIN_FILENO, buffer.data() + before, block);
  } while (bytes < 0 && errno == EINTR);
  buffer.resize(before + static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  if (bytes < 0) fail("cannot read from stdin: {}", {system_reason()});
  return bytes > 0;
}

struct Answer {
  std::string_view line;
  std::string text, error;
};

// `lines` ends with a line end.
void answer_lines(std::string_view lines, int64_t& number, const std::function<std::string(std::string_view)>& answer) {
  std::vector<Answer> answers;
  if (number == 0 && lines.starts_with("\xef\xbb\xbf")) lines.remove_prefix(3);  // a mark
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = lines.find('\n', begin);
    answers.push_back({lines.substr(begin, end - begin), {}, {}});
    begin = end + 1;
  }
  parallel_for(static_cast<int64_t>(answers.size()), 16, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) try {
        if (!is_blank(answers[i].line)) answers[i].text = answer(answers[i].line) + "\n";
      } catch (const Error& error) {
        answers[i].error = error.what();
      }
  });
  std::string together;
  for (const Answer& each : answers) {
    ++number;
    if (!each.error.empty()) write_out(together);
    if (!each.error.empty()) fail("line {}: {}", {number, each.error});
    together += each.text;
  }
  write_out(together);
}

std::string list_json(const std::vector<int64_t>& numbers) {
  std::string json = "[";
  for (const int64_t number : numbers) json += (json.size() > 1 ? ", " : "") + std::to_string(number);
  return json + "]";
}

}  // namespace

void filter_lines(const std::function<std::string(std::string_view line)>& answer) {
  std::string buffer;
  int64_t number = 0;
  size_t searched = 0;  // bytes of the buffer that hold no line end
  for (bool more = true; more;) {
    more = read_some(buffer);
    if (!more && !buffer.empty()) buffer += '\n';
    const size_t last = std::string_view(buffer).substr(searched).rfind('\n');
    if (last == std::string_view::npos) {
      searched = buffer.size();
      continue;
    }
    const size_t complete = searched + last + 1;
    answer_lines(std::string_view(buffer).substr(0, complete), number, answer);
    buffer.erase(0, complete);
    searched = buffer.size();
  }
}

std::string encode_json(const Tokenizer& tokenizer, std::string_view line, bool with_first) {
  const JsonValue value = parse_json(line, "JSON", kLineLimits);
  const JsonValue& text = value["text"];
  if (!text.is_text()) fail("expected an object with a text \"text\"");
  std::vector<int64_t> ids;
  if (const int64_t first = tokenizer.marks().first; with_first && first >= 0) ids.push_back(first);
  tokenizer.append_ids(text.text(), 0, ids);
  tokenizer.append_end(text.text(), ids);
  return R"({"ids": )" + list_json(ids) + "}";
}

std::string chat_json(const ChatTokenizer& chat, std::string_view line) {
  std::vector<int64_t> ids, answers;
  chat.append_ids(line, 0, ids);
  const int64_t vocab = chat.vocab_size() / 2;
  for (int64_t& id : ids) {
    answers.push_back(id / vocab);
    id %= vocab;
  }
  return R"({"ids": )" + list_json(ids) + R"(, "answers": )" + list_json(answers) + "}";
}

std::string decode_json(const Tokenizer& tokenizer, std::string_view line) {
  const JsonValue value = parse_json(line, "JSON", kLineLimits);
  const JsonValue& list = value["ids"];
  if (!list.is_list()) fail("expected an object with a list \"ids\"");
  std::vector<int64_t> ids;
  for (const JsonValue& id : list.items()) {
    if (!id.is_integer()) fail("\"ids\" holds what is no integer, at index {}", {ids.size()});
    ids.push_back(id.integer());
  }
  // In ASCII: some programs take U+2028 and the like for the end of a line.
  return R"({"text": )" + quoted_json(replace_invalid_utf8(tokenizer.decode(ids)), true) + "}";
}

}  // namespace ricci::apps
