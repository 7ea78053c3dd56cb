// The published sizes of the Dispatcher paper's models.
#include <doctest/doctest.h>

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

}  // namespace

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
