// Errors are exceptions with values in their messages: fail("matmul: index {} is {} but {}", {'k', 3, 4}). error.cpp formats the pattern.
// Including a formatting library here would slow down the compilation of every kernel file.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

namespace ricci {

// Thrown for every user error: bad input, bad shapes, bad files. The message is one line.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One value of a message. It can refer to a temporary, so it is valid only during the call.
struct ErrorValue {
  ErrorValue(const std::convertible_to<std::string_view> auto& text) : value(std::string_view(text)) {}
  ErrorValue(char letter) : value(letter) {}
  ErrorValue(std::signed_integral auto number) : value(int64_t{number}) {}
  ErrorValue(std::unsigned_integral auto number) : value(uint64_t{number}) {}
  ErrorValue(std::floating_point auto number) : value(double{number}) {}

  std::variant<std::string_view, char, int64_t, uint64_t, double> value;
};

// Replaces each {} by the next value. Formats such as {:.3g} work as in fmt.
std::string format_message(const char* pattern, std::initializer_list<ErrorValue> values);

// Makes a text from outside safe for a message. Control characters become blanks, since a terminal would interpret them. A text of more
// than `most` bytes is truncated and ends in "...".
std::string one_line(std::string_view text, size_t most = 60);

[[noreturn]] void fail(const char* pattern, std::initializer_list<ErrorValue> values = {});

std::string system_reason();  // the description of errno

// Returns f(), and puts the subject before the message of an Error that f throws: "data: cannot read a.txt".
template <class F> auto about(const std::string& subject, const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    fail("{}: {}", {subject, error.what()});
  }
}

}  // namespace ricci
