// Every family of several scales must decode as it reads, leave padding alone, give the same with activations computed
// again, and train in every dtype on every device.
#include <cstring>

#include "autograd/random.h"
#include "models/layers/layers.h"
#include "models/training/train_step.h"
#include "tests/models/families/scale_cases.h"

using namespace ricci;

TEST_CASE("several scales: decoding with caches gives the logits of the full forward at every position") {
  for (Variant& v : all_variants()) {
    CAPTURE(v.name);
    check_decoding(v.config, Device::cpu);
    if (!runs_on(Device::cuda_emulated, v)) continue;
    v.config.ctx = 8;
    check_decoding(v.config, Device::cuda_emulated);
  }
}

TEST_CASE("several scales: a padded sequence has the logits of the short one, whatever stands in the padding") {
  for (const Variant& v : all_variants()) {
    CAPTURE(v.name);
    const Model model = built(v.config, Device::cpu);
    const Tensor lengths_b = ids_of({25, 14}, {2}, Device::cpu), tokens = ids(2, 25, Device::cpu);
    const Tensor padded = model.logits({.ids_bc = tokens, .lengths_b = lengths_b}), full = model.logits({tokens});
    const Tensor alone = model.logits({tokens.rows(1, 1).reshaped({25}).rows(0, 14).reshaped({1, 14})});
    const Tensor others = model.logits({.ids_bc = ids(2, 25, Device::cpu, 14), .lengths_b = lengths_b});
    for (int64_t i = 0; i < 25 * 11; ++i) CHECK(item(padded, i) == item(full, i));
    for (int64_t i = 0; i < 14 * 11; ++i) {
      CHECK(std::abs(item(padded, 25 * 11 + i) - item(alone, i)) < 1e-13);
      CHECK(item(others, 25 * 11 + i) == item(padded, 25 * 11 + i));
    }
    // Padding hears cells, but not the padding itself: its own keys are hidden.
    bool moved = false;
    for (int64_t i = (25 + 14) * 11; i < 50 * 11; ++i) moved |= item(padded, i) != item(full, i);
    CHECK(moved);
  }
}

TEST_CASE("several scales: blocks that are computed again give the same gradients, dropout included") {
  for (Variant v : all_variants()) {
    CAPTURE(v.name);
    v.config.block.dropout = 0.2;
    std::vector<std::vector<Tensor>> gradients;
    for (bool recompute : {false, true}) {
      Model model = built(v.config, Device::cpu);
      model.recompute_blocks(recompute);
      const Training training;
      set_random_state({4, 0});
      Tape tape;
      tape.backward(model.loss({ids(2, 19, Device::cpu), ids(2, 19, Device::cpu, 3)}));
      gradients.emplace_back();
      for (const Parameter* p : model.parameters()) gradients.back().push_back(p->grad ? p->grad : zeros_like(p->value));
    }
    for (size_t i = 0; i < gradients[0].size(); ++i) CHECK(same_bits(gradients[0][i], gradients[1][i]));
  }
}

TEST_CASE("several scales: a step in every dtype, and all parameters that a sequence reaches get a gradient") {
  std::vector<Variant> variants = all_variants();
  for (Variant& v : variants_of(family_of<Coarse>)) variants.push_back(v);
  for (Variant& v : variants)
    for (Device device : {Device::cpu, Device::cuda_emulated})
      for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
        if (!runs_on(device, v) || (device == Device::cuda_emulated && dtype == Dtype::f32)) continue;  // decoding runs f64 there
        CAPTURE(v.name);
        CAPTURE(std::string(name_of(device)));
        CAPTURE(std::string(name_of(dtype)));
        Model model(v.config);
        model.init(3);
        model.place_for_training(dtype, device);
        const double exact = item(built(v.config, Device::cpu).loss({ids(2, 19, Device::cpu), ids(2, 19, Device::cpu, 3)}));
        const Inputs inputs{ids(2, 19, device), ids(2, 19, device, 3)};
        Tape tape;
        const Tensor loss = model.loss(inputs);
        tape.backward(loss);
        CHECK(item(loss) == doctest::Approx(exact).epsilon(dtype == Dtype::bf16 ? 0.01 : 1e-5));
        model.each_parameter([&](const std::string& path, Parameter& p) {
          CAPTURE(path);
          const bool unused =
              v.name.find("longer than the context") != v.name.npos && (path.find(".64") != path.npos || path == "up.64.weight");
          CHECK(static_cast<bool>(p.grad) == !unused);
          if (p.grad) CHECK(count_nonfinite(p.grad) == 0);
        });
      }
}

TEST_CASE("several scales: micro-batches have the loss and gradient of the whole, also where the loss leaves positions out") {
  for (Family family : {family_of<TopDown>, family_of<Coarse>})
    for (Device device : {Device::cpu, Device::cuda_emulated}) {
      CAPTURE(std::string(name_of(family)));
      ModelConfig config = small_scales(family);
      if (!runs_on(device, {"", config})) continue;
      config.settings<TopDown>().loss_from = LossFrom::first_full;
      const Tensor tokens = ids(4, 19, Device::cpu), targets = ids(4, 19, Device::cpu, 3);
      for (int64_t i = 0; i < targets.size(); ++i)
        if (const int64_t b = i / 19, t = i % 19; t < 3 * b || t >= 19 - 4 * b) targets.data<int64_t>()[i] = -1;
      std::vector<std::pair<double, std::vector<Tensor>>> steps;  // loss and gradients
      for (int64_t rows : {4, 1}) {
        std::vector<MicroBatch> micro_batches;
        for (int64_t b = 0; b < 4; b += rows)
          micro_batches.push_back(micro_batch_from({to(tokens.rows(b, rows), device), to(targets.rows(b, rows), device)}));
        Model model = built(config, device);
        const double loss = TrainStep(model, device, 8).forward_backward(micro_batches, 0);
        steps.push_back({loss, {}});
        for (const Parameter* p : model.parameters()) steps.back().second.push_back(p->grad);
      }
      CHECK(steps[0].first > 1);
      CHECK(steps[0].first == doctest::Approx(steps[1].first).epsilon(1e-13));
      for (size_t i = 0; i < steps[0].second.size(); ++i) CHECK(difference(steps[1].second[i], steps[0].second[i]) < 1e-11);
    }
}

TEST_CASE("several scales: more positions than the context, none at all, other targets") {
  for (Family family : {family_of<TopDown>, family_of<BottomUp>, family_of<Retina>}) {
    const Model model = built(small_scales(family), Device::cpu);
    CHECK(message_of([&] { model.logits({ids(1, 27, Device::cpu)}); }) == "model: 27 positions, but the context it was built for is 26");
    CHECK(message_of([&] { model.loss({ids(1, 7, Device::cpu), ids(1, 6, Device::cpu)}); }) == "model: targets [1 6] for ids [1 7]");
    const auto state = model.init_state(1);
    CHECK(message_of([&] { model.advance(ids(1, 0, Device::cpu), *state); }) == "model: no position to read");
    CHECK(message_of([&] { model.advance(ids(1, 27, Device::cpu), *state); }) ==
          "model: 27 positions, but the context it was built for is 26");
  }
}
