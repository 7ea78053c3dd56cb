// ricci-puzzles NUMBER ...: runs these puzzles, or all, and prints the result of each.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "apps/tour/puzzle.h"

namespace ricci::puzzle {

static std::vector<Puzzle>& all() {
  static std::vector<Puzzle> puzzles;
  return puzzles;
}

Entry::Entry(const Puzzle& puzzle) { all().push_back(puzzle); }

void expect(const char* name, const Tensor& got, const std::vector<float>& expected, float tolerance) {
  if (got.size() != static_cast<int64_t>(expected.size())) fail("{} has {} elements, expected {}", {name, got.size(), expected.size()});
  for (int64_t i = 0; i < got.size(); ++i) {
    const float value = static_cast<float>(item(got, i)), wanted = expected[static_cast<size_t>(i)];
    if (std::isnan(value)) fail("{}[{}] is nan, expected {:g}", {name, i, wanted});
    if (std::abs(value - wanted) > tolerance) fail("{}[{}] is {:g}, expected {:g}", {name, i, value, wanted});
  }
}

// Runs one puzzle and prints its line. Returns true if it is solved.
static bool run(const Puzzle& puzzle) {
  try {
    puzzle.check();
    std::printf("puzzle %d, %s: solved\n", puzzle.number, puzzle.name);
    return true;
  } catch (const Error& error) {
    std::printf("puzzle %d, %s: %s\n", puzzle.number, puzzle.name, error.what());
    return false;
  }
}

static const Puzzle& find(const char* text) {
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  const auto found = std::find_if(all().begin(), all().end(), [&](const Puzzle& p) { return p.number == number; });
  if (*text == 0 || *end != 0 || found == all().end())
    fail("ricci-puzzles: unknown puzzle '{}', expected a number from 1 to {}", {one_line(text), all().size()});
  return *found;
}

}  // namespace ricci::puzzle

int main(int count, char** arguments) {
  using namespace ricci::puzzle;
  std::sort(all().begin(), all().end(), [](const Puzzle& a, const Puzzle& b) { return a.number < b.number; });
  try {
    std::vector<Puzzle> chosen;
    for (int i = 1; i < count; ++i) chosen.push_back(find(arguments[i]));
    size_t solved = 0;
    for (const Puzzle& puzzle : chosen.empty() ? all() : chosen) solved += run(puzzle);
    return solved == (chosen.empty() ? all() : chosen).size() ? 0 : 1;
  } catch (const ricci::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
