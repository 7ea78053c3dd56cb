// The published sizes of models: of the Dispatcher paper, and of decoders of today.
#include <doctest/doctest.h>

#include <vector>

#include "core/memory/dry_run.h"
#include "models/model.h"

using namespace ricci;

namespace {

int64_t parameters(MixerKind mixer, int64_t vocab, int64_t d, int64_t layers, int64_t ctx) {
  ModelConfig c;
  c.preset = Preset::msa, c.mixer = mixer;
  apply_preset(c);
  c.vocab = vocab, c.d = d, c.block.ff = d, c.layers = layers, c.ctx = ctx, c.settings<Sdp>().heads = 1;
  return Model(c).parameter_count();
}

struct Published {
  const char* name;
  int64_t vocab, d, layers, ff, heads, kv_heads, head_width, parameters;
  bool tied = true, qk_norm = false, qkv_bias = false;
};

int64_t parameters(const Published& of) {
  ModelConfig c;
  c.preset = Preset::llama;
  apply_preset(c);
  c.vocab = of.vocab, c.d = of.d, c.layers = of.layers, c.block.ff = of.ff, c.ctx = 131'072, c.output.tie = of.tied;
  SdpConfig& attention = c.settings<Sdp>();
  attention.heads = of.heads, attention.kv_heads = of.kv_heads, attention.head_width = of.head_width;
  attention.qk_norm = of.qk_norm, attention.qkv_bias = of.qkv_bias;
  const DryRun dry(Device::cpu);  // nothing is computed, and no memory is taken
  return Model(c).parameter_count();
}

}  // namespace

TEST_CASE("parameter counts of llama, qwen2 and qwen3 models are the published ones") {
  for (const Published& of : std::vector<Published>{{"SmolLM2-135M", 49'152, 576, 30, 1536, 9, 3, 64, 134'515'008},
           {"SmolLM2-360M", 49'152, 960, 32, 2560, 15, 5, 64, 361'821'120},
           {"Qwen2.5-0.5B", 151'936, 896, 24, 4864, 14, 2, 64, 494'032'768, true, false, true},
           {"Qwen3-0.6B", 151'936, 1024, 28, 3072, 16, 8, 128, 596'049'920, true, true},
           {"TinyLlama 1.1B", 32'000, 2048, 22, 5632, 32, 4, 64, 1'100'048'384, false},
           {"Llama-3.2-1B", 128'256, 2048, 16, 8192, 32, 8, 64, 1'235'814'400}}) {
    CAPTURE(of.name);
    CHECK(parameters(of) == of.parameters);
  }
}

TEST_CASE("parameter counts are those of the papers") {
  // WikiText-103: 39M and 36M.
  CHECK(parameters(kind_of<Sdp>, 28'996, 512, 6, 512) == 39'188'804);
  CHECK(parameters(kind_of<Dispatcher>, 28'996, 512, 6, 512) == 36'058'436);
  // One Billion Words: 41M and 38M, with the vocabulary of bert-base-uncased.
  CHECK(parameters(kind_of<Sdp>, 30'522, 512, 6, 512) == 40'752'954);
  CHECK(parameters(kind_of<Dispatcher>, 30'522, 512, 6, 512) == 37'622'586);
  // After OpenWebText, with the vocabulary of GPT-2: 59M.
  CHECK(parameters(kind_of<Dispatcher>, 50'257, 480, 12, 1024) == 59'448'337);
}
