// GPT-2 writes every byte of a piece as one visible character: printable Latin-1 as itself, the 68 other bytes as U+0100 and
// the code points that follow it. A space is written as U+0120, a capital G with a dot.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace ricci {

// The characters of the bytes, as UTF-8.
std::string bytes_to_letters(std::string_view bytes);

// The bytes of the characters; nothing where one of them stands for no byte.
std::optional<std::string> letters_to_bytes(std::string_view letters);

}  // namespace ricci
