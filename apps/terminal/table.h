// Tables for a terminal.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace ricci::apps {

using Cells = std::vector<std::string>;  // of a row

// Columns as wide as their widest cell, the first `to_the_left` of them to the left, the others to the right. Ends without a line end.
std::string aligned(const std::vector<Cells>& rows, size_t to_the_left);

}  // namespace ricci::apps
