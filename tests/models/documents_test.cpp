// Packed documents in models: logits, losses and gradients are those of the documents alone. What does not keep them apart refuses them.
#include "tests/ops/documents.h"

#include "autograd/tape.h"
#include "ops/shapes/shape_ops.h"
#include "tests/models/model_cases.h"

using namespace ricci;

namespace {

const Packing kRows{{4, 1, 7, 3}, {9, 6}};
constexpr int64_t kContext = 15;

ModelConfig config_of(MixerKind mixer, PositionKind positions) {
  ModelConfig c;
  c.vocab = 11, c.ctx = 16, c.d = 12, c.layers = 2, c.mixer = mixer;
  c.embedding.positions = positions;
  c.settings<Sdp>().heads = 4;
  c.settings<Dispatcher>().heads = 2;
  c.settings<AveragePool>().pool = 4;
  return c;
}

std::vector<ModelConfig> configs() {
  std::vector<ModelConfig> all;
  for (PositionKind positions : {PositionKind::learned, PositionKind::sinusoidal, PositionKind::none})
    for (MixerKind mixer : {kind_of<Sdp>, kind_of<Dispatcher>, kind_of<AveragePool>}) all.push_back(config_of(mixer, positions));
  ModelConfig llama = config_of(kind_of<Sdp>, PositionKind::rope);
  llama.preset = Preset::llama;
  apply_preset(llama);
  llama.settings<Sdp>().kv_heads = 2, llama.settings<Sdp>().head_width = 4, llama.settings<Sdp>().qk_norm = true;
  all.push_back(llama);
  all.push_back(config_of(kind_of<Sdp>, PositionKind::learned));
  all.back().settings<Sdp>().window = 3;
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

std::vector<Tensor> gradients(Model& model) {
  std::vector<Tensor> all;
  for (Parameter* p : model.parameters()) {
    all.push_back(p->grad ? p->grad : zeros_like(p->value));
    p->grad = {};
  }
  return all;
}

std::string text_of(const ModelConfig& c) {
  return std::string(name_of(c.mixer)) + ", positions " + std::string(name_of(c.embedding.positions));
}

}  // namespace

TEST_CASE("packed documents: logits and gradients of a row are those of the documents alone, on every device") {
  for (Device device : {Device::cpu, Device::cuda_emulated})
    for (const ModelConfig& config : configs()) {
      CAPTURE(text_of(config));
      Model model = built(config, device);
      const Inputs packed = packed_inputs(device);
      const Tensor logits = model.logits(packed);
      {
        Tape tape;
        tape.backward(model.loss(packed));
      }
      const std::vector<Tensor> together = gradients(model);
      const double scored = static_cast<double>(targets_in(packed.targets));
      each_document(kRows, [&](int64_t row, int64_t first, int64_t length) {
        const Inputs alone = document_inputs(packed, row, first, length);
        CHECK(difference(document_of(logits, row, first, length), model.logits(alone)) < 1e-12);
        Tape tape;
        const double share = static_cast<double>(targets_in(alone.targets)) / scored;
        tape.backward(model.loss(alone), tensor_of({share}, {}, Dtype::f64, device));
      });
      const std::vector<Tensor> summed = gradients(model);
      for (size_t i = 0; i < summed.size(); ++i) {
        double largest = 0;
        for (int64_t n = 0; n < summed[i].size(); ++n) raise_to(largest, std::abs(item(summed[i], n) - item(together[i], n)));
        CHECK(largest < 1e-12);
      }
    }
}

TEST_CASE("packed documents: recomputed blocks give the same bits, and a start that is off by one is noticed") {
  for (MixerKind mixer : {kind_of<Sdp>, kind_of<Dispatcher>, kind_of<AveragePool>}) {
    Model model = built(config_of(mixer, PositionKind::learned), Device::cpu);
    Inputs packed = packed_inputs(Device::cpu);
    const Tensor logits = model.logits(packed);
    const auto run = [&] {
      Tape tape;
      tape.backward(model.loss(packed));
      return gradients(model);
    };
    const std::vector<Tensor> kept = run();
    model.recompute_blocks(true);
    const std::vector<Tensor> recomputed = run();
    for (size_t i = 0; i < kept.size(); ++i) CHECK(same_bits(kept[i], recomputed[i]));
    packed.starts_bc = ids_of(starts_of({{5, 1, 6, 3}, {9, 6}}), {2, kContext}, Device::cpu);
    CHECK(difference(model.logits(packed), logits) > 1e-4);
  }
}

TEST_CASE("packed documents: models that do not keep them apart say which key is in the way") {
  const auto message = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = config_of(kind_of<Sdp>, PositionKind::learned);
    config.scales.scales = {1, 4};
    change(config);
    resolve(config);
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
