// Packed documents in models: logits, losses and gradients are those of the documents alone. What does not keep them apart refuses them.
#include "tests/ops/documents.h"

#include "autograd/tape.h"
#include "ops/shapes/shape_ops.h"
#include "tests/models/model_cases.h"

using namespace ricci;

namespace {

const Packing kRows{{4, 1, 7, 3}, {9, 6}};
constexpr int64_t kContext = 15;

ModelConfig config_of(MixerKind mixer, PositionKind positions, Preset preset = Preset::gpt) {
  ModelConfig c = small_config(mixer, preset);
  c.ctx = 16, c.embedding.positions = positions;
  c.settings<Dispatcher>().heads = 2, c.settings<AveragePool>().pool = 4;
  return c;
}

// On the emulator, which is slow, once without positions.
std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (PositionKind positions : {PositionKind::learned, PositionKind::sinusoidal, PositionKind::none})
    for (MixerKind mixer : {kind_of<Sdp>, kind_of<Dispatcher>, kind_of<AveragePool>})
      all.push_back({name_of(mixer) + std::string(", positions ") + name_of(positions), config_of(mixer, positions),
          positions == PositionKind::none});
  ModelConfig llama = config_of(kind_of<Sdp>, PositionKind::rope, Preset::llama), windowed = config_of(kind_of<Sdp>, PositionKind::learned);
  llama.settings<Sdp>().kv_heads = 2, llama.settings<Sdp>().head_width = 4, llama.settings<Sdp>().qk_norm = true;
  windowed.settings<Sdp>().window = 3;
  all.push_back({"llama", llama}), all.push_back({"sdp, a window", windowed});
  return all;
}

// Targets: the next token of the document.
Inputs packed_inputs(Device device) {
  const Tensor ids_bc = ids(2, kContext, Device::cpu), targets_bc = zeros({2, kContext}, Dtype::i64, Device::cpu);
  each_document(kRows, [&](int64_t row, int64_t first, int64_t length) {
    for (int64_t t = 0; t < length; ++t)
      targets_bc.data<int64_t>()[row * kContext + first + t] = t + 1 < length ? ids_bc.data<int64_t>()[row * kContext + first + t + 1] : -1;
  });
  return {to(ids_bc, device), to(targets_bc, device), {}, ids_of(starts_of(kRows), {2, kContext}, device)};
}

Inputs document_inputs(const Inputs& packed, int64_t row, int64_t first, int64_t length) {
  return {document_of(packed.ids_bc, row, first, length), document_of(packed.targets, row, first, length)};
}

}  // namespace

TEST_CASE("packed documents: logits and gradients of a row are those of the documents alone, on every device") {
  for (Device device : {Device::cpu, Device::cuda_emulated})
    for (const Variant& v : variants()) {
      if (device == Device::cuda_emulated && !v.on_emulator) continue;
      CAPTURE(v.name);
      Model model = built(v.config, device);
      const Inputs packed = packed_inputs(device);
      const Tensor logits = model.logits(packed);
      {
        Tape tape;
        tape.backward(model.loss(packed));
      }
      const std::vector<Tensor> together = taken_gradients(model);
      const double scored = static_cast<double>(targets_in(packed.targets));
      each_document(kRows, [&](int64_t row, int64_t first, int64_t length) {
        const Inputs alone = document_inputs(packed, row, first, length);
        CHECK(difference(document_of(logits, row, first, length), model.logits(alone)) < 1e-12);
        Tape tape;
        const double share = static_cast<double>(targets_in(alone.targets)) / scored;
        tape.backward(model.loss(alone), tensor_of({share}, {}, Dtype::f64, device));
      });
      const std::vector<Tensor> summed = taken_gradients(model);
      for (size_t i = 0; i < summed.size(); ++i) {
        double largest = 0;
        for (int64_t n = 0; n < together[i].size(); ++n) raise_to(largest, std::abs(item(summed[i], n) - item(together[i], n)));
        CHECK(largest < 1e-12);
      }
    }
}

TEST_CASE("packed documents: recomputed blocks give the same bits, and a start that is off by one is noticed") {
  for (MixerKind mixer : {kind_of<Sdp>, kind_of<Dispatcher>, kind_of<AveragePool>}) {
    Model model = built(config_of(mixer, PositionKind::learned), Device::cpu);
    Inputs packed = packed_inputs(Device::cpu);
    const Tensor logits = model.logits(packed);
    std::vector<Tensor> gradients[2];
    for (const bool recompute : {false, true}) {
      model.recompute_blocks(recompute);
      Tape tape;
      tape.backward(model.loss(packed));
      gradients[recompute] = taken_gradients(model);
    }
    CHECK(same_bits(gradients[0], gradients[1]));
    packed.starts_bc = ids_of(starts_of({{5, 1, 6, 3}, {9, 6}}), {2, kContext}, Device::cpu);
    CHECK(difference(model.logits(packed), logits) > 1e-4);
  }
}

TEST_CASE("packed documents: models that do not keep them apart say which key is in the way") {
  const auto message = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = config_of(kind_of<Sdp>, PositionKind::learned);
    config.scales.scales = {1, 4};
    change(config);
    const Model model = built(config, Device::cpu);
    return message_of([&] { model.logits(packed_inputs(Device::cpu)); });
  };
  CHECK(message([](ModelConfig&) {}) == "no error");
  CHECK(message([](ModelConfig& c) { c.mixer = kind_of<Metric>; }) ==
        "model.mixer: metric, which does not keep packed documents apart, expected sdp, dispatcher, avgpool");
  CHECK(message([](ModelConfig& c) { c.family = family_of<TopDown>; }) ==
        "model.family: topdown, which does not keep packed documents apart, expected decoder");
  CHECK(message([](ModelConfig& c) { c.causal = false; }) == "model.causal: false, but packed documents are read by causal models only");
}
