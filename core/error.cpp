#include "core/error.h"

#include <fmt/args.h>
#include <fmt/format.h>

namespace ricci {

std::string format_message(const char* pattern, std::initializer_list<ErrorValue> values) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const ErrorValue& value : values) {
    switch (value.kind_) {
      case ErrorValue::Kind::text: store.push_back(value.text_); break;
      case ErrorValue::Kind::letter: store.push_back(static_cast<char>(value.integer_)); break;
      case ErrorValue::Kind::integer: store.push_back(value.integer_); break;
      case ErrorValue::Kind::natural: store.push_back(value.natural_); break;
      case ErrorValue::Kind::real: store.push_back(value.real_); break;
    }
  }
  return fmt::vformat(pattern, store);
}

void fail(const char* pattern, std::initializer_list<ErrorValue> values) { throw Error(format_message(pattern, values)); }

}  // namespace ricci
