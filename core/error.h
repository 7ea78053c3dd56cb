// Errors are exceptions that carry values: fail("matmul: index {} is {} but {}", {'k', 3, 4}).
// The pattern is formatted in error.cpp, so that no header a kernel file sees includes a formatting library.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ricci {

// Thrown for everything a user can cause: bad input, bad shapes, bad files. what() is one line.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One value of a message. Only lives as long as the call it is made for.
struct ErrorValue {
  ErrorValue(const std::convertible_to<std::string_view> auto& text) : value(std::string_view(text)) {}
  ErrorValue(char letter) : value(letter) {}
  ErrorValue(std::signed_integral auto number) : value(int64_t{number}) {}
  ErrorValue(std::unsigned_integral auto number) : value(uint64_t{number}) {}
  ErrorValue(std::floating_point auto number) : value(double{number}) {}

  std::variant<std::string_view, char, int64_t, uint64_t, double> value;
};

// The pattern with each {} replaced by the next value; {:.3g} and the like work as in fmt.
std::string format_message(const char* pattern, std::initializer_list<ErrorValue> values);

// Text from outside for a message: control characters become blanks, and what is too long ends with "...".
std::string one_line(std::string_view text, size_t most = 60);

[[noreturn]] void fail(const char* pattern, std::initializer_list<ErrorValue> values = {});

std::string system_reason();  // the system's words for errno

// ---- The word that a user may have meant
// The least number of slips that turns a into b, in bytes: a letter inserted, removed or replaced, or two neighbours swapped (the
// optimal string alignment distance).
size_t edit_distance(std::string_view a, std::string_view b);
// True if a word of this length may be a slip of the pen for another at this distance: one letter in four may be wrong.
bool is_near(size_t distance, size_t letters);

// The known word with the least distance, the first of several. Empty where none is near.
std::string nearest_of(std::string_view word, const std::vector<std::string>& known);
// ", the nearest is 'heads'": that word. Nothing where none is near.
std::string nearest_note(std::string_view word, const std::vector<std::string>& known);

}  // namespace ricci
