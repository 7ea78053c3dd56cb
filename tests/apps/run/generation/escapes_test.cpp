// Escapes of prompts, as in YAML's double quotes.
#include "apps/run/generation/writer.h"
#include "tests/ops/values.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

std::string meant(const char* text) { return unescape(text, "--prompt"); }

}  // namespace

TEST_CASE("escapes: each stands for its character, and other text for itself") {
  CHECK(meant("") == "");
  CHECK(meant("to be \xc3\xa9 'or' \"not\"") == "to be \xc3\xa9 'or' \"not\"");
  CHECK(meant(R"(a\nb\tc\\d\"e\/)") == "a\nb\tc\\d\"e/");
  CHECK(meant(R"(\0\a\b\v\f\r\e\ )") == std::string("\0\a\b\v\f\r\x1b ", 8));
  CHECK(meant(R"(\x41\xe9\u20ac\U0001f600)") == "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(meant(R"(\N\_\L\P)") == "\xc2\x85\xc2\xa0\xe2\x80\xa8\xe2\x80\xa9");
  CHECK(meant(R"(\\n)") == "\\n");
}

TEST_CASE("escapes: messages") {
  CHECK(message_of([] { meant(R"(ab\q)"); }) == "--prompt: unknown escape '\\q' at byte 2; two backslashes mean one");
  CHECK(message_of([] { meant("ab\\"); }) == "--prompt: a backslash at the end; two of them mean one");
  CHECK(message_of([] { meant(R"(\x4)"); }) == "--prompt: \\x at byte 0 needs 2 hexadecimal digits");
  CHECK(message_of([] { meant(R"(\u00g0)"); }) == "--prompt: \\u at byte 0 needs 4 hexadecimal digits");
  CHECK(message_of([] { meant(R"(\u-123)"); }) == "--prompt: \\u at byte 0 needs 4 hexadecimal digits");
  CHECK(message_of([] { meant(R"(a\ud800)"); }) == "--prompt: \\ud800 at byte 1 is no character");
  CHECK(message_of([] { meant(R"(\U00110000)"); }) == "--prompt: \\U00110000 at byte 0 is no character");
}
