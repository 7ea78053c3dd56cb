// Fuzzes run files and overrides: a run file, then overrides, with a zero byte before each.
#include "apps/run/config.h"

#include <vector>

#include "apps/run/train_config.h"
#include "tests/fuzz/input.h"

using namespace ricci;
using namespace ricci::apps;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::InputFile input, printed;
  std::vector<std::string> overrides = fuzz::parts_of({reinterpret_cast<const char*>(data), size});
  const std::string text = overrides.front();
  overrides.erase(overrides.begin());
  fuzz::attempt([&] {
    const TrainConfig config = load_config<TrainConfig>(input.write(text), overrides);
    const std::string yaml = to_yaml(config);
    fuzz::require(to_yaml(load_config<TrainConfig>(printed.write(yaml))) == yaml, "a printed config reads back to the same config");
  });
  return 0;
}
