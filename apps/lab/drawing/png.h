// Pictures of coloured cells inside drawings.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ricci::apps {

using Colour = std::array<uint8_t, 3>;  // red, green, blue

// A picture as the bytes of a PNG file; pixels row by row, width of them in each.
std::string to_png(int64_t width, const std::vector<Colour>& pixels);

// The same as the address of an <image>: data:image/png;base64,...
std::string to_data_address(const std::string& png);

}  // namespace ricci::apps
