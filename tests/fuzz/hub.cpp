// Fuzzes the config.json of Llama, Qwen2 and Qwen3.
#include "apps/interop/llama.h"
#include "apps/run/config/config.h"
#include "tests/fuzz/input.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

ModelConfig read(const std::string& path) {
  const JsonFile json(path);
  if (!is_llama(json.text("model_type").value_or(""))) fail("another architecture");
  return config_of_llama(json, -1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::InputFile input, written;
  fuzz::attempt([&] {
    const ModelConfig config = read(input.write({reinterpret_cast<const char*>(data), size}));
    fuzz::attempt([&] {
      const std::string json = llama_config_json(config, {});
      fuzz::require(llama_config_json(read(written.write(json)), {}) == json, "what is written reads back to the same config");
    });
  });
  return 0;
}
