// A training step of 64 sequences of 1,024 tokens, with more than 2^31 elements in its feed-forward layers, or a fourth of them in coarse,
// on the emulator with its option `ends`: an overflowing 32-bit index in any kernel of any mixer or family is an error. The results have no
// meaning.
#include <algorithm>

#include "cuda/emulator/emulator.h"
#include "tests/models/training/every_model.h"
#include "tests/models/training/forward_backward.h"

using namespace ricci;

namespace {

constexpr int64_t kSequences = 64, kContext = 1024, kWide = (int64_t{1} << 31) / (kSequences * kContext) + 8;

struct WithEnds {
  const emu::Options before = emu::options();
  WithEnds() {
    emu::options() = {};
    emu::options().ends = true;
  }
  ~WithEnds() { emu::options() = before; }
};

ModelConfig large(Family family, MixerKind mixer = kind_of<Sdp>) {
  ModelConfig c;
  c.family = family, c.mixer = mixer;
  apply_preset(c);
  c.vocab = 300, c.ctx = kContext, c.d = 32, c.layers = 1, c.block.ff = kWide, c.settings<Sdp>().heads = 2;
  c.settings<Classifier>().classes = 3, c.scales.scales = {1, 16}, c.stack_layers.layers = {1};
  return c;
}

void check_step(const std::string& name, const ModelConfig& config) {
  CAPTURE(name);
  const WithEnds ends;
  constexpr Device device = Device::cuda_emulated;
  Model model(config, 3);
  model.place_for_training(Dtype::bf16, device);
  Optimizer optimizer(model.trained_parameters(), {});
  int64_t largest = 0;
  const RequestWatch watch(device, [&](const void*, int64_t bytes) { largest = std::max(largest, bytes); });
  const bool classifies = config.family == family_of<Classifier>;
  const Tensor ids_bc = zeros({kSequences, kContext}, Dtype::i64, device);
  const Tensor targets = classifies ? zeros({kSequences}, Dtype::i64, device) : ids_bc;
  forward_backward(model, {{ids_bc, targets, {}, targets.size()}});
  optimizer.begin_step(1e-3);
  optimizer.update(0, zeros({}, Dtype::f64, device));
  const int64_t positions = config.family == family_of<Coarse> ? config.settings<Coarse>().scale : 1;  // per cell
  CHECK(largest > (int64_t{1} << 32) / positions);
}

}  // namespace

// The feed-forward layers are the largest, and the same in all of them. The long run also takes steps of the others.
TEST_CASE("a large step: every mixer and every family") {
  for (size_t i = 0; i < (test::everything() ? choices(MixerKind()).size() : 1); ++i)
    check_step(choices(MixerKind())[i], large(family_of<Decoder>, static_cast<MixerKind>(i)));
  for (size_t i = 0; i < choices(Family()).size() && test::everything(); ++i)
    if (static_cast<Family>(i) != family_of<Decoder>) check_step(choices(Family())[i], large(static_cast<Family>(i)));
}
