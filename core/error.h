// Errors are exceptions that carry values: fail("matmul: index {} is {} but {}", {'k', 3, 4}).
// The pattern is formatted in error.cpp, so that no header a kernel file sees includes a formatting library.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ricci {

// Thrown for everything a user can cause: bad input, bad shapes, bad files. what() is one line.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One value of a message. Only lives as long as the call it is made for.
class ErrorValue {
 public:
  ErrorValue(std::string_view text) : kind_(Kind::text), text_(text) {}
  ErrorValue(const char* text) : kind_(Kind::text), text_(text) {}
  ErrorValue(const std::string& text) : kind_(Kind::text), text_(text) {}
  ErrorValue(char letter) : kind_(Kind::letter), integer_(letter) {}
  ErrorValue(std::signed_integral auto number) : kind_(Kind::integer), integer_(number) {}
  ErrorValue(std::unsigned_integral auto number) : kind_(Kind::natural), natural_(number) {}
  ErrorValue(std::floating_point auto number) : kind_(Kind::real), real_(static_cast<double>(number)) {}

 private:
  friend std::string format_message(const char* pattern, std::initializer_list<ErrorValue> values);
  enum class Kind : uint8_t { text, letter, integer, natural, real } kind_;
  std::string_view text_;
  int64_t integer_ = 0;
  uint64_t natural_ = 0;
  double real_ = 0;
};

// The pattern with each {} replaced by the next value; {:.3g} and the like work as in fmt.
std::string format_message(const char* pattern, std::initializer_list<ErrorValue> values);

// Text from outside for a message: control characters become blanks, and what is too long ends with "...".
std::string one_line(std::string_view text, size_t most = 60);

[[noreturn]] void fail(const char* pattern, std::initializer_list<ErrorValue> values = {});

std::string system_reason();  // the system's words for errno

}  // namespace ricci
