// Layers outside of a model: their values are there when they are made.
#include "models/layers/layers.h"

#include <type_traits>

#include "models/model.h"
#include "models/training/optimizer.h"
#include "ops/elements/activations.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Net {
  Linear hidden{4, 9, 1}, output{9, 2, 2};
  LayerNorm norm{9};
  std::vector<Table> tables = {Table(3, 4, uint64_t{3})};
  Tensor operator()(const Arg& x) const { return output(norm(relu(hidden(x)))); }
  template <class V> void visit(V&& v) { v("hidden", hidden, "output", output, "norm", norm, "tables", tables); }
};

// A seed is any integer, and no bool.
template <class Layer, class... Made> constexpr bool kMade = std::is_constructible_v<Layer, int64_t, int64_t, Made...>;
static_assert(
    kMade<Linear, int> && kMade<Linear, uint64_t> && kMade<Linear, bool, MapInit> && !kMade<Linear, bool> && !kMade<Linear, const bool&>);
static_assert(kMade<Table, int> && kMade<Table, uint64_t> && kMade<Table, Init> && !kMade<Table, bool> && !kMade<Table, const bool&>);

}  // namespace

TEST_CASE("layers that are made with a seed have their first values") {
  const Linear one(4, 9, 1), same(4, 9, 1), other(4, 9, 2);
  for (const double w : values_of(one.weight.value)) CHECK(std::abs(w) <= 0.5);  // 1 / sqrt(4)
  for (const double b : values_of(one.bias.value)) CHECK(std::abs(b) <= 0.5);
  CHECK(values_of(one.weight.value) == values_of(same.weight.value));
  CHECK(values_of(one.weight.value) != values_of(other.weight.value));
  CHECK(values_of(LayerNorm(3).weight.value) == Values{1, 1, 1});
  CHECK(values_of(LayerNorm(3).bias.value) == Values{0, 0, 0});
  double squares = 0;
  for (const double value : values_of(Table(50, 200, uint64_t{1}).weight.value)) squares += value * value;
  CHECK(std::abs(squares / 1e4 - 1) < 0.06);
}

TEST_CASE("parameters_of: every parameter of a module with its path, which an optimizer updates") {
  Net net;
  const std::vector<Parameter*> parameters = parameters_of(net);
  std::string paths;
  for (const Parameter* p : parameters) paths += p->path + " ";
  CHECK(paths == "hidden.weight hidden.bias output.weight output.bias norm.weight norm.bias tables.0.weight ");
  const Values before = values_of(net.hidden.weight.value);
  Optimizer optimizer(parameters, {});
  Tape tape;
  const Tensor y = net(drawn({5, 4}, Dtype::f32, Device::cpu, 1));
  tape.backward(y, drawn({5, 2}, Dtype::f32, Device::cpu, 2));
  optimizer.step(0.1);
  CHECK(values_of(net.hidden.weight.value) != before);
}

TEST_CASE("draw_parameters: each from random numbers of its own path, as Model::init") {
  Net net;
  draw_parameters(net, 7);
  const Values first = values_of(net.hidden.weight.value);
  Net again;
  draw_parameters(again, 7);
  CHECK(values_of(again.hidden.weight.value) == first);
  CHECK(values_of(Net().hidden.weight.value) != first);
}

TEST_CASE("a model that is made with a seed has the weights of init") {
  ModelConfig config;
  config.vocab = 5, config.ctx = 4, config.d = 8, config.layers = 1;
  config.of<Sdp>().heads = 2;
  Model made(config, 3), later(config);
  later.init(3);
  const std::vector<Parameter*> of_made = made.parameters(), of_later = later.parameters();
  for (size_t i = 0; i < of_made.size(); ++i) CHECK(values_of(of_made[i]->value) == values_of(of_later[i]->value));
}
