#include "apps/terminal/table.h"

#include <algorithm>

#include "data/tokenizers/utf8.h"

namespace ricci::apps {

std::string aligned(const std::vector<Cells>& rows, size_t to_the_left) {
  const auto width_of = [](const std::string& cell) { return static_cast<size_t>(count_characters(cell)); };
  std::vector<size_t> widths;
  for (const Cells& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const Cells& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width_of(row[i]), ' ');
      line += (i ? "  " : "") + (i < to_the_left ? row[i] + blanks : blanks + row[i]);
    }
    text += (text.empty() ? "" : "\n") + line.substr(0, line.find_last_not_of(' ') + 1);
  }
  return text;
}

}  // namespace ricci::apps
