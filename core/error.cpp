// Messages, and the word that a user probably meant.
#include "core/error.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <system_error>

namespace ricci {

std::string format_message(const char* pattern, std::initializer_list<ErrorValue> values) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const ErrorValue& each : values) std::visit([&](const auto& value) { store.push_back(value); }, each.value);
  return fmt::vformat(pattern, store);
}

std::string one_line(std::string_view text, size_t most) {
  std::string line(text.size() <= most ? text : text.substr(0, most - 3));
  for (size_t i = 0; i < line.size(); ++i) {
    const auto byte = [&](size_t position) { return position < line.size() ? static_cast<unsigned char>(line[position]) : 0; };
    if (byte(i) < 32 || byte(i) == 127) line[i] = ' ';
    const bool is_c1 = byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) < 0xa0;  // U+009B starts an escape sequence as ESC [ does
    if (is_c1) line[i] = line[i + 1] = ' ';
  }
  return text.size() <= most ? line : line + "...";
}

void fail(const char* pattern, std::initializer_list<ErrorValue> values) { throw Error(format_message(pattern, values)); }

std::string system_reason() { return std::generic_category().message(errno); }

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);  // for the first i - 1, i and i + 1 letters of a
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j] + (a[i] != b[j]), above[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    before = above;
    above.swap(row);
  }
  return above[b.size()];
}

bool is_near(size_t distance, size_t letters) { return distance <= (letters + 2) / 4; }

std::string nearest_of(std::string_view word, const std::vector<std::string>& known) {
  word = word.substr(0, 100);
  size_t least = SIZE_MAX;
  std::string best;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return is_near(least, word.size()) ? best : "";
}

std::string nearest_note(std::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_of(word, known);
  return nearest.empty() ? "" : ", the nearest is '" + one_line(nearest) + "'";
}

}  // namespace ricci
