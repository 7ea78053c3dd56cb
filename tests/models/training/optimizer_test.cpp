// Optimizers against torch.optim, their state, and the learning rate schedules.
#include "models/training/optimizer.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>

#include "core/files/safetensors.h"
#include "models/model.h"
#include "models/training/schedule.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

std::vector<Parameter*> pointers(std::vector<Parameter>& parameters) {
  std::vector<Parameter*> all;
  for (Parameter& p : parameters) all.push_back(&p);
  return all;
}

// The three parameters of the golden files: a matrix, a bias and a gain.
std::vector<Parameter> golden_parameters(const SafetensorsFile& file, const std::string& name, Device device) {
  std::vector<Parameter> parameters;
  for (Role role : {Role::matrix, Role::bias, Role::gain}) {
    const std::string number = std::to_string(parameters.size());
    parameters.push_back({.value = to(file.load(name + "/p" + number), device), .path = "p" + number, .role = role});
  }
  return parameters;
}

double setting(const SafetensorsFile& file, const std::string& key, double otherwise) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? otherwise : found->second == "True" ? 1 : std::stod(found->second);
}

SafetensorsFile golden_file() {
  const char* elsewhere = std::getenv("RICCI_TESTS_FOLDER");  // set if the program was built on another machine
  return SafetensorsFile(std::string(elsewhere ? elsewhere : RICCI_TESTS_FOLDER) + "/golden/optimizers.safetensors");
}

OptimizerConfig golden_config(const SafetensorsFile& file, const std::string& name) {
  OptimizerConfig c{.kind = choice_of<OptimizerKind>("optimizer", name.substr(0, name.find('_')))};
  for (AdamW* const adam : {&c.settings<AdamW>(), static_cast<AdamW*>(&c.settings<Adam>())}) {
    adam->beta1 = setting(file, name + "/beta1", 0.9);
    adam->beta2 = setting(file, name + "/beta2", 0.999);
    adam->eps = setting(file, name + "/eps", 1e-8);
  }
  c.settings<Sgd>() = {setting(file, name + "/momentum", 0), setting(file, name + "/nesterov", 0) != 0};
  c.settings<Muon>() = {.momentum = setting(file, name + "/momentum", 0),
      .nesterov = setting(file, name + "/nesterov", 0) != 0,
      .ns_steps = static_cast<int64_t>(setting(file, name + "/ns_steps", 5)),
      .adjust_lr = file.metadata().contains(name + "/adjust_lr_fn") ? AdjustLr::match_rms_adamw : AdjustLr::original};
  c.weight_decay = setting(file, name + "/weight_decay", 0);
  return c;
}

std::vector<Parameter> drawn_parameters(Dtype dtype) {
  std::vector<Parameter> parameters;
  parameters.push_back(
      {.value = drawn({4, 5}, dtype, Device::cpu, 1), .path = "blocks.0.fc.weight", .role = Role::matrix, .row_blocks = {4}});
  parameters.push_back({.value = drawn({5}, dtype, Device::cpu, 2), .path = "blocks.0.fc.bias", .role = Role::bias});
  return parameters;
}

void draw_gradients(std::vector<Parameter>& parameters, uint64_t step) {
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i].grad = drawn(parameters[i].value.shape(), parameters[i].unrounded().dtype(), Device::cpu, 100 * (step + 1) + i);
}

std::string state_names(OptimizerConfig config, Dtype dtype) {
  std::vector<Parameter> parameters = drawn_parameters(dtype);
  std::string names;
  Optimizer(pointers(parameters), config).each_state([&](const std::string& name, const Tensor& t) {
    CHECK(t.dtype() == (dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32));
    names += name + " ";
  });
  return names;
}

const OptimizerConfig kEvery[] = {OptimizerConfig::with(AdamW(), 0.1), OptimizerConfig::with(Adam(), 0.1),
    OptimizerConfig::with(Sgd{.momentum = 0.9, .nesterov = true}, 0.1), OptimizerConfig::with(Muon(), 0.1)};

// Matrices of every form in a block, as Muon updates them: square, tall, wide, and q, k and v in one.
const std::vector<int64_t> kRowBlocks[] = {{3}, {4}, {2}, {3, 2, 2}};

std::vector<Parameter> drawn_matrices(Dtype dtype, Device device) {
  std::vector<Parameter> matrices;
  for (const Shape& shape : {Shape{3, 3}, Shape{4, 2}, Shape{2, 4}, Shape{7, 3}}) {
    const size_t i = matrices.size();
    matrices.push_back(
        {.value = drawn(shape, dtype, device, 10 + i), .path = "blocks.0.p" + std::to_string(i), .row_blocks = kRowBlocks[i]});
  }
  return matrices;
}

}  // namespace

TEST_CASE("optimizers: step by step the values of torch.optim") {
  on_every_device([](Device device) {
    const SafetensorsFile file = golden_file();
    for (const std::string name : {"adamw", "adam", "sgd", "sgd_momentum", "sgd_nesterov"}) {
      CAPTURE(name);
      std::vector<Parameter> parameters = golden_parameters(file, name, device);
      Optimizer optimizer(pointers(parameters), golden_config(file, name));
      for (int64_t step = 0; step < file.shape(name + "/g0")[0]; ++step) {
        std::vector<Tensor> expected;
        for (Parameter& p : parameters) {
          const std::string number = p.path.substr(1);
          p.grad = to(file.load(name + "/g" + number).rows(step, 1).reshaped(p.value.shape()), device);
          expected.push_back(file.load(name + "/x" + number).rows(step, 1).reshaped(p.value.shape()));
        }
        optimizer.step(setting(file, name + "/lr", 0));
        for (size_t i = 0; i < parameters.size(); ++i) CHECK(error_of(parameters[i].value, values_of(expected[i])) < 1e-13);
      }
    }
  });
}

// The f32 bound is larger: the Newton-Schulz steps multiply a small singular value, with its error, by up to 3.4445^5.
TEST_CASE("optimizers: muon updates square, tall, wide and packed matrices step by step as torch.optim.Muon does") {
  on_every_device([](Device device) {
    const SafetensorsFile file = golden_file();
    for (const std::string name : {"muon", "muon_plain", "muon_match"})
      for (Dtype dtype : {Dtype::f64, Dtype::f32}) {
        CAPTURE(name);
        std::vector<Parameter> matrices = drawn_matrices(dtype, device);
        const auto golden = [&](const Parameter& p, const char* letter) { return file.load(name + "/" + letter + p.path.substr(10)); };
        for (Parameter& p : matrices) p.value = to(convert(golden(p, "p"), dtype), device);
        Optimizer optimizer(pointers(matrices), golden_config(file, name));
        for (int64_t step = 0; step < 20; ++step) {
          for (Parameter& p : matrices) p.grad = to(convert(golden(p, "g").rows(step, 1).reshaped(p.value.shape()), dtype), device);
          optimizer.step(setting(file, name + "/lr", 0));
          for (const Parameter& p : matrices)
            CHECK(error_of(p.value, values_of(golden(p, "x").rows(step, 1).reshaped(p.value.shape()))) <
                  (dtype == Dtype::f64 ? 1e-13 : 1e-6));
        }
      }
  });
}

// Sizes that the products cut into blocks, with rows of q, k and v.
Parameter packed_matrix(const std::vector<int64_t>& rows, Dtype dtype) {
  return {.value = drawn({std::accumulate(rows.begin(), rows.end(), int64_t{0}), 70}, dtype, Device::cpu, 1),
      .path = "blocks.0.qkv.weight",
      .row_blocks = rows};
}

TEST_CASE("optimizers: muon updates a packed matrix like its parts, for any number of threads") {
  const std::vector<int64_t> rows{96, 33, 33};
  check_threads([&] {
    std::vector<Parameter> packed{packed_matrix(rows, Dtype::f32)}, parts;
    for (int64_t part = 0, first = 0; part < 3; first += rows[static_cast<size_t>(part++)]) {
      const Tensor value = convert(convert(packed[0].value, Dtype::f64).rows(first, rows[static_cast<size_t>(part)]), Dtype::f32);
      parts.push_back({.value = value, .path = "blocks.0.part", .row_blocks = {value.shape()[0]}});
    }
    Optimizer a(pointers(packed), kEvery[3]), b(pointers(parts), kEvery[3]);
    for (uint64_t step = 0; step < 3; ++step) {
      draw_gradients(packed, step);
      for (int64_t part = 0, first = 0; part < 3; first += rows[static_cast<size_t>(part++)])
        parts[static_cast<size_t>(part)].grad = packed[0].grad.rows(first, rows[static_cast<size_t>(part)]);
      a.step(0.01);
      b.step(0.01);
    }
    for (int64_t part = 0, first = 0; part < 3; first += rows[static_cast<size_t>(part++)])
      CHECK(same_bits(packed[0].value.rows(first, rows[static_cast<size_t>(part)]), parts[static_cast<size_t>(part)].value));
    return std::vector<Tensor>{packed[0].value};
  });
}

TEST_CASE("optimizers: muon updates the linear maps in blocks, and everything else as adamw does") {
  ModelConfig config;
  config.vocab = 7, config.ctx = 6, config.d = 8, config.layers = 1, config.output.tie = false, config.block.gated = true;
  SdpConfig& attention = config.settings<Sdp>();
  attention.heads = 4, attention.kv_heads = 2;
  const std::map<std::string, std::vector<int64_t>> expected{{"blocks.0.mixer.qkv.weight", {8, 4, 4}}, {"blocks.0.mixer.proj.weight", {8}},
      {"blocks.0.fc.weight", {32, 32}}, {"blocks.0.fc_out.weight", {8}}};
  Model muon(config), adamw(config);
  std::vector<Tensor> values[2];
  for (Model* model : {&muon, &adamw}) {
    model->init(1);
    model->place(Dtype::f32, Device::cpu);
    Optimizer optimizer(model->parameters(), OptimizerConfig{.kind = model == &muon ? optimizer_kind<Muon> : optimizer_kind<AdamW>});
    for (uint64_t step = 0; step < 2; ++step) {
      for (Parameter* p : model->parameters()) p->grad = drawn(p->value.shape(), Dtype::f32, Device::cpu, step);
      optimizer.step(0.1);
    }
    for (Parameter* p : model->parameters()) values[model == &adamw].push_back(p->value);
  }
  for (size_t i = 0; i < values[0].size(); ++i) {
    const Parameter& p = *muon.parameters()[i];
    CAPTURE(p.path);
    const auto matrix = expected.find(p.path);
    CHECK(same_bits(values[0][i], values[1][i]) == (matrix == expected.end()));
    if (matrix != expected.end()) CHECK(p.row_blocks == matrix->second);
  }
}

TEST_CASE("optimizers: a gradient that is not finite changes nothing") {
  on_every_device([](Device device) {
    for (const OptimizerConfig& config : kEvery)
      for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
        std::vector<Parameter> matrices = drawn_matrices(dtype, device);
        Optimizer optimizer(pointers(matrices), config);
        const auto state = [&] {
          std::vector<Tensor> all;
          for (const Parameter& p : matrices)
            for (const Tensor& t : {p.value, p.unrounded()}) all.push_back(to(convert(t, Dtype::f64), Device::cpu));
          optimizer.each_state([&](const std::string&, const Tensor& t) { all.push_back(to(convert(t, Dtype::f64), Device::cpu)); });
          return all;
        };
        const auto step = [&](double first) {
          for (Parameter& p : matrices)
            p.grad = to(tensor_of(Values(static_cast<size_t>(p.value.size()), 0.5), p.value.shape(), p.sum_dtype(), Device::cpu), device);
          fill(matrices[0].grad, first);
          optimizer.begin_step(0.1);
          optimizer.update(1, zeros({}, Dtype::f64, device));
          return state();
        };
        const std::vector<Tensor> before = step(1);
        for (double bad : {double{NAN}, HUGE_VAL}) {
          const std::vector<Tensor> after = step(bad);
          for (size_t i = 0; i < before.size(); ++i) CHECK(values_of(after[i]) == values_of(before[i]));
        }
        CHECK(values_of(step(1)[0]) != values_of(before[0]));
      }
  });
}

TEST_CASE("optimizers: factors of a parameter have the bits of an optimizer with that rate and decay") {
  on_every_device([](Device device) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (OptimizerConfig config : kEvery) {
        CAPTURE(std::string(name_of(config.kind)));
        // The last matching pattern is used. Products with powers of two are exact.
        config.lr_of = {{"blocks", 4}, {"blocks.*.fc.bias", 0.25}}, config.decay_of = {{"blocks.*.fc", 3}, {"blocks.0.fc.weight", 0.5}};
        std::vector<Parameter> with_factors = drawn_parameters(dtype), weight = drawn_parameters(dtype), bias = drawn_parameters(dtype);
        for (std::vector<Parameter>* const all : {&with_factors, &weight, &bias})
          for (Parameter& p : *all) p.value = to(p.value, device);
        OptimizerConfig half = config;
        half.lr_of = half.decay_of = {}, half.weight_decay /= 2;
        Optimizer a(pointers(with_factors), config), b(pointers(weight), half), c(pointers(bias), half);
        for (uint64_t step = 0; step < 5; ++step) {
          for (std::vector<Parameter>* const all : {&with_factors, &weight, &bias}) {
            draw_gradients(*all, step);
            for (Parameter& p : *all) p.grad = to(p.grad, device);
          }
          a.step(1e-2), b.step(4e-2), c.step(0.25e-2);
        }
        CHECK(same_bits(with_factors[0].unrounded(), weight[0].unrounded()));
        CHECK(same_bits(with_factors[1].unrounded(), bias[1].unrounded()));
        CHECK(same_bits(with_factors[0].value, weight[0].value));
        CHECK(!same_bits(with_factors[0].value, bias[0].value));
      }
  });
}

TEST_CASE("optimizers: with a rate of 0 the values stay, but the moments change") {
  for (OptimizerConfig config : kEvery) {
    std::vector<Parameter> still = drawn_parameters(Dtype::f32), moving = drawn_parameters(Dtype::f32);
    const Values before = values_of(still[0].value);
    config.weight_decay = 0;  // adam and sgd add it to the gradient
    Optimizer b(pointers(moving), config);
    config.lr_of = {{"blocks.0.fc.weight", 0}};
    Optimizer a(pointers(still), config);
    for (uint64_t step = 0; step < 3; ++step) {
      draw_gradients(still, step), draw_gradients(moving, step);
      a.step(0.1), b.step(0.1);
    }
    CHECK(values_of(still[0].value) == before);
    CHECK(values_of(moving[0].value) != before);
    CHECK(same_bits(still[1].value, moving[1].value));
    std::vector<Tensor> states;
    a.each_state([&](const std::string&, const Tensor& t) { states.push_back(t); });
    size_t i = 0;
    b.each_state([&](const std::string&, const Tensor& t) { CHECK(same_bits(t, states[i++])); });
  }
}

TEST_CASE("optimizers: weight decay acts by role, also in a model") {
  for (bool decay_embeddings : {true, false}) {
    ModelConfig config;
    config.vocab = 7, config.ctx = 6, config.d = 8, config.settings<Sdp>().heads = 2, config.layers = 1, config.output.tie = false,
    config.output.head_bias = true;
    Model model(config);
    model.init(1);
    model.place(Dtype::f32, Device::cpu);
    std::map<std::string, Values> before;
    model.each_parameter([&](const std::string& path, Parameter& p) {
      before[path] = values_of(p.value);
      p.grad = zeros_like(p.value);
    });
    Optimizer optimizer(model.parameters(), {.weight_decay = 0.5, .decay_embeddings = decay_embeddings});
    optimizer.step(0.1);
    int decayed = 0, same = 0;
    model.each_parameter([&](const std::string& path, Parameter& p) {
      CAPTURE(path);
      const bool table = path == "tok.weight" || path == "pos.weight", vector = path.ends_with(".bias") || path.find("ln") != path.npos;
      const bool decays = table ? decay_embeddings : !vector;
      Values expected = before[path];
      for (double& x : expected) x *= decays ? 0.95 : 1;
      CHECK(error_of(p.value, expected) <= (decays ? 1e-6 : 0));
      ++(decays ? decayed : same);
    });
    CHECK(decayed == (decay_embeddings ? 7 : 5));  // qkv, proj, fc, fc_out, head; tok and pos
    CHECK(same == (decay_embeddings ? 11 : 13));
  }
}

TEST_CASE("optimizers: bf16 values follow f32 master weights and lose nothing by small steps") {
  for (const OptimizerConfig& config : kEvery) {
    std::vector<Parameter> narrow = drawn_parameters(Dtype::bf16), wide;
    for (const Parameter& p : narrow)
      wide.push_back({.value = convert(p.value, Dtype::f32), .path = p.path, .role = p.role, .row_blocks = p.row_blocks});
    Optimizer a(pointers(narrow), config), b(pointers(wide), config);
    for (uint64_t step = 0; step < 50; ++step) {
      draw_gradients(narrow, step);
      for (size_t i = 0; i < wide.size(); ++i) wide[i].grad = convert(narrow[i].grad, Dtype::f32);
      a.step(1e-4), b.step(1e-4);
    }
    for (size_t i = 0; i < wide.size(); ++i) CHECK(same_bits(narrow[i].value, convert(wide[i].value, Dtype::bf16)));
    for (size_t i = 0; i < wide.size(); ++i) CHECK(same_bits(narrow[i].master, wide[i].value));
  }
}

TEST_CASE("optimizers: the names of the state") {
  const std::string adam = "blocks.0.fc.weight.m blocks.0.fc.weight.v blocks.0.fc.bias.m blocks.0.fc.bias.v ";
  CHECK(state_names(OptimizerConfig::with(AdamW()), Dtype::f32) == adam);
  CHECK(state_names(OptimizerConfig::with(Adam()), Dtype::f64) == adam);
  CHECK(state_names(OptimizerConfig::with(Sgd{.momentum = 0.9}), Dtype::f32) == "blocks.0.fc.weight.momentum blocks.0.fc.bias.momentum ");
  CHECK(state_names(OptimizerConfig::with(Sgd{.momentum = 0}), Dtype::f32).empty());
  CHECK(state_names(OptimizerConfig::with(AdamW()), Dtype::bf16) == adam);
  CHECK(state_names(OptimizerConfig::with(Muon()), Dtype::bf16) == "blocks.0.fc.weight.m blocks.0.fc.bias.m blocks.0.fc.bias.v ");
}

TEST_CASE("optimizers: a step takes the gradients and leaves parameters without one alone") {
  std::vector<Parameter> parameters = drawn_parameters(Dtype::f32);
  const Values before = values_of(parameters[1].value);
  Optimizer optimizer(pointers(parameters), kEvery[0]);
  parameters[0].grad = tensor_of(Values(20, 3.0), {4, 5}, Dtype::f32, Device::cpu);
  optimizer.step(0.1);
  CHECK(!parameters[0].grad);
  CHECK(values_of(parameters[1].value) == before);
}

TEST_CASE("optimizers: a step without any gradient is an error") {
  std::vector<Parameter> parameters = drawn_parameters(Dtype::f32);
  Optimizer optimizer(pointers(parameters), kEvery[0]);
  CHECK(message_of([&] { optimizer.step(0.1); }) == "optimizer: no parameter has a gradient; call Tape::backward before step");
  CHECK(optimizer.steps() == 0);
}

TEST_CASE("optimizers: weights that are moved, converted or reshaped later are an error") {
  std::vector<Parameter> parameters = drawn_parameters(Dtype::f32);
  Optimizer optimizer(pointers(parameters), {});
  const auto complaint = [&](const Tensor& value) {
    const Tensor before = parameters[1].value;
    parameters[1].value = value, parameters[1].grad = zeros_like(value);
    const std::string message = message_of([&] { optimizer.step(0.1); });
    parameters[1].value = before, parameters[1].grad = {};
    return message;
  };
  CHECK(complaint(zeros({5}, Dtype::f32, Device::cuda_emulated)) ==
        "adamw: blocks.0.fc.bias is on cuda_emulated and blocks.0.fc.weight is on cpu, expected one device");
  CHECK(complaint(zeros({5}, Dtype::f64, Device::cpu)) == "adamw: m of blocks.0.fc.bias is f32 [5] on cpu, expected f64 [5] on cpu");
  CHECK(complaint(zeros({6}, Dtype::f32, Device::cpu)) == "adamw: m of blocks.0.fc.bias is f32 [5] on cpu, expected f32 [6] on cpu");
}

TEST_CASE("optimizers: messages") {
  std::vector<Parameter> parameters = drawn_parameters(Dtype::f32);
  CHECK(message_of([&] { choice_of<OptimizerKind>("optimizer", "lion"); }) ==
        "optimizer: expected one of adamw, adam, sgd, muon, got 'lion'");
  CHECK(message_of([&] {
    Optimizer(pointers(parameters), {.lr_of = {{"blocks", 1}, {"blocks.0.fc.weigth", 2}}});
  }) == "lr_of: 'blocks.0.fc.weigth' matches no trained parameter, the nearest is 'blocks.0.fc.weight'");
  CHECK(message_of([&] {
    Optimizer(pointers(parameters), {.decay_of = {{"head\n", 1}}});
  }) == "decay_of: 'head ' matches no trained parameter");
  Optimizer optimizer(pointers(parameters), {});
  CHECK(message_of([&] { optimizer.set_steps(-1); }) == "optimizer: the step count is -1, expected 0 or more");
  parameters[1].path.clear();
  CHECK(message_of([&] { optimizer.each_state([](const std::string&, const Tensor&) {}); }) ==
        "optimizer: parameter 1 of shape [5] has no path");
}

TEST_CASE("schedule: every kind in the warm-up, at its corners, between them and after its end") {
  using Kind = Schedule::Kind;
  const Schedule cosine{Kind::cosine, 1e-3, 1e-4, 100}, linear{Kind::linear, 1, 0, 0}, constant{Kind::constant, 1, 0, 3},
      root{Kind::inverse_sqrt, 1e-2, 1e-3, 99}, wsd{Kind::wsd, 1, 0.1, 10, 0.2};
  struct Row {
    Schedule schedule;
    int64_t step, last;
    double rate;
  };
  for (const Row& row : std::vector<Row>{{cosine, 0, 2000, 1e-3 / 101}, {cosine, 99, 2000, 1e-3 * 100 / 101}, {cosine, 100, 2000, 1e-3},
           {cosine, 1050, 2000, 5.5e-4}, {cosine, 2000, 2000, 1e-4}, {cosine, 5000, 2000, 1e-4}, {linear, 5, 10, 0.5}, {linear, 20, 10, 0},
           {constant, 9, 10, 1}, {constant, 1, 10, 0.5}, {root, 0, 100000, 1e-4}, {root, 98, 100000, 0.99e-2}, {root, 99, 100000, 1e-2},
           {root, 399, 100000, 5e-3}, {root, 1599, 100000, 2.5e-3}, {root, 9999, 100000, 1e-3}, {root, 90000, 100000, 1e-3},
           {{Kind::inverse_sqrt, 1, 0, 0}, 0, 100000, 1}, {wsd, 9, 1000, 10.0 / 11}, {wsd, 10, 1000, 1}, {wsd, 500, 1000, 1},
           {wsd, 800, 1000, 1}, {wsd, 900, 1000, 0.55}, {wsd, 1000, 1000, 0.1}, {wsd, 2000, 1000, 0.1},
           {{Kind::wsd, 1, 0, 200, 1.0}, 200, 1000, 1},  // the decay begins after the warm-up
           {{Kind::wsd, 1, 0, 200, 1.0}, 600, 1000, 0.5}, {{Kind::wsd, 1, 0, 0, 0}, 999, 1000, 1}}) {
    CAPTURE(std::string(name_of(row.schedule.kind)));
    CAPTURE(row.step);
    CHECK(std::abs(row.schedule.rate(row.step, row.last) - row.rate) <= 1e-12 * row.rate);
  }
}
