// The nats of single tokens are those whose mean is the loss.
#include <doctest/doctest.h>

#include <cmath>

#include "core/error.h"
#include "cuda/device/device.h"
#include "models/inference/evaluation.h"

using namespace ricci;

namespace {

Model model_of(Family family, int64_t ctx, LossFrom loss_from = LossFrom::start) {
  ModelConfig config;
  config.family = family, config.vocab = 19, config.ctx = ctx, config.d = 16, config.layers = 1;
  config.scales.scales = {1, 4}, config.stack_layers.layers = {1}, config.settings<TopDown>().loss_from = loss_from;
  apply_preset(config);
  resolve(config);
  Model model(config);
  model.init(3);
  model.place(Dtype::f32, Device::cpu);
  return model;
}

Tensor ids_of(const std::vector<int64_t>& ids, int64_t rows) {
  const Tensor t({rows, static_cast<int64_t>(ids.size()) / rows}, Dtype::i64);
  std::copy(ids.begin(), ids.end(), t.data<int64_t>());
  return t;
}

std::vector<int64_t> text(int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back((i * i + 3 * i) % 19);
  return ids;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("token nats: their mean is the loss, and -1 is no target") {
  for (const Family family : {family_of<Decoder>, family_of<TopDown>, family_of<BottomUp>, family_of<Retina>}) {
    const Model model = model_of(family, 8);
    std::vector<int64_t> targets = text(16);
    targets[3] = targets[15] = -1;
    const Inputs inputs{ids_of(text(17), 1).reshaped({17}).rows(0, 16).reshaped({2, 8}), ids_of(targets, 2)};
    const std::vector<double> nats = token_nats(model, inputs);
    REQUIRE(nats.size() == 16);
    CHECK(std::isnan(nats[3]));
    CHECK(std::isnan(nats[15]));
    double sum = 0;
    for (const double n : nats) sum += std::isnan(n) ? 0 : n;
    CHECK(sum / 14 == doctest::Approx(item(model.loss(inputs))).epsilon(1e-5));
  }
}

TEST_CASE("token nats: the first position that counts") {
  CHECK(first_scored(model_of(family_of<Decoder>, 8), 8) == 0);
  CHECK(first_scored(model_of(family_of<TopDown>, 8), 8) == 0);
  CHECK(first_scored(model_of(family_of<TopDown>, 8, LossFrom::first_full), 8) == 3);
}

TEST_CASE("token nats: a text longer than the context is read in windows that overlap by half") {
  const Model model = model_of(family_of<Decoder>, 8);
  const std::vector<int64_t> ids = text(23);
  const std::vector<double> nats = nats_of_text(model, ids, 1, 8, Device::cpu);
  REQUIRE(nats.size() == 22);
  // Token 9 + i is the first that the second window tells: positions 4 .. 11 predict the tokens 5 .. 12, of which 5 .. 8 are known already.
  const auto window = [&](size_t begin) {
    return token_nats(
        model, {ids_of({ids.begin() + static_cast<ptrdiff_t>(begin), ids.begin() + static_cast<ptrdiff_t>(begin) + 8}, 1),
                   ids_of({ids.begin() + static_cast<ptrdiff_t>(begin) + 1, ids.begin() + static_cast<ptrdiff_t>(begin) + 9}, 1)});
  };
  for (size_t t = 1; t <= 8; ++t) CHECK(nats[t - 1] == doctest::Approx(window(0)[t - 1]));
  for (size_t t = 9; t <= 12; ++t) CHECK(nats[t - 1] == doctest::Approx(window(4)[t - 5]));
  for (size_t t = 13; t <= 16; ++t) CHECK(nats[t - 1] == doctest::Approx(window(8)[t - 9]));
  const std::vector<double> end = nats_of_text(model, ids, 10, 8, Device::cpu);
  REQUIRE(end.size() == 13);
  for (size_t i = 0; i < end.size(); ++i) CHECK(end[i] == nats[9 + i]);
  CHECK(message_of([&] { nats_of_text(model, ids, 0, 8, Device::cpu); }) == "token nats: from token 0 of 23 on, expected 1 or more");
}

TEST_CASE("token nats: errors") {
  const Model model = model_of(family_of<Decoder>, 8), coarse = model_of(family_of<Coarse>, 8);
  CHECK(message_of([&] {
    token_nats(coarse, {ids_of(text(8), 1), ids_of(text(8), 1)});
  }) == "token nats: model.family: coarse, which gives no probability of the next token");
  CHECK(message_of([&] { token_nats(model, {ids_of(text(2), 1), ids_of({1, 19}, 1)}); }) == "token nats: target 19, expected -1 .. 18");
}
