#include "core/error.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <cerrno>
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
    const bool is_c1 = byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) < 0xa0;  // U+009B starts an escape sequence, like ESC [
    if (is_c1) line[i] = line[i + 1] = ' ';
  }
  return text.size() <= most ? line : line + "...";
}

void fail(const char* pattern, std::initializer_list<ErrorValue> values) { throw Error(format_message(pattern, values)); }

std::string system_reason() { return std::generic_category().message(errno); }

}  // namespace ricci
