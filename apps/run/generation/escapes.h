// Characters that are hard to type, written as in YAML's double quotes: \n, \t, \", \\, \x41, \u00e9, \U0001f600.
#pragma once
#include <string>
#include <string_view>

namespace ricci::apps {

// The text that is meant. `option` is named in errors: an unknown escape, one that is cut off, a number that is no character; each
// with its byte.
std::string unescape(std::string_view text, const char* option);

// The text that a user gives: what stands in the file, or behind the option, with escapes; "-" for either: all of stdin.
std::string given_text(const std::string& text, const std::string& file, const char* option);

}  // namespace ricci::apps
