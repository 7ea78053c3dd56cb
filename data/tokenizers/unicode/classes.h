// What kind of character a code point is: the general categories of the Unicode standard, as ICU has them.
#pragma once
#include <cstdint>

namespace ricci {

// Bits of a class.
namespace unicode {
inline constexpr uint8_t letter = 1;       // \p{L}
inline constexpr uint8_t number = 2;       // \p{N}
inline constexpr uint8_t space = 4;        // \s: the property White_Space
inline constexpr uint8_t punctuation = 8;  // \p{P}, and all of ASCII's signs, $ + < = > ^ ` | ~ among them
inline constexpr uint8_t nonspacing = 16;  // \p{Mn}: accents that stand over or under a letter
inline constexpr uint8_t other = 32;       // control, format and private use; not the unassigned ones, which may become letters
inline constexpr uint8_t ideograph = 64;   // a Chinese character, as BERT defines it
}  // namespace unicode

// The classes of all code points, indexed by code point. Filled on first use, in a millisecond.
const uint8_t* unicode_classes();

}  // namespace ricci
