// Fuzzes metrics.jsonl and its curves. The first byte chooses how.
#include <cmath>

#include "apps/lab/plot/curves.h"
#include "tests/fuzz/input.h"

using namespace ricci;
using namespace ricci::apps;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::InputFile input;
  if (size == 0) return 0;
  const uint8_t how = data[0];
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  fuzz::attempt([&] {
    const std::vector<RunRecords> runs(1 + (how & 1), read_records(input.write(text)));
    for (const char* x : {"step", "time"}) {
      fuzz::attempt([&] {
        Report report;
        report.add(chart_of(runs, {.x = x, .smooth = how & 2 ? 20.0 : 0, .log_y = (how & 4) != 0}));
        const std::string svg = to_svg("", report.pictures), page = page_of(report);
        fuzz::require(svg.ends_with("</svg>\n") && svg.find("nan") == svg.npos && svg.find("inf") == svg.npos, "a drawing has numbers");
        fuzz::require(page.size() > svg.size() / 2, "a page holds its drawing");
      });
    }
  });
  return 0;
}
