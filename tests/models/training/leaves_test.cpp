// Sums of gradients: over the leaves of a step along the tree, in all bits; in f32 over micro-batches of bf16; and each is complete when
// it is said to be.
#include <algorithm>
#include <map>
#include <set>

#include "autograd/completion.h"
#include "models/layers/layers.h"
#include "tests/models/training/every_model.h"
#include "tests/models/training/small_training.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr uint64_t kSeed = 8;
constexpr int64_t kStep = 4;

Model made(const ModelConfig& config, Dtype dtype, Device device, bool recompute = false) {
  Model model(config, 3);
  model.place_for_training(dtype, device);
  model.recompute_blocks(recompute);
  return model;
}

// The gradient of one leaf by a plain loop. Each micro-batch weighs as much as the others.
std::vector<Tensor> leaf_gradients(Model& model, const std::vector<MicroBatch>& all, const Range& micro_batches, Device device) {
  const Training training;
  const Tensor weight({}, Dtype::f64, device);
  fill(weight, 1.0 / static_cast<double>(all.size()));
  for (int64_t i = micro_batches.lo; i < micro_batches.hi; ++i) {
    set_random_state({kSeed, static_cast<uint64_t>(kStep) << 32, static_cast<uint64_t>(i)});
    Tape tape;
    tape.backward(model.loss(all[static_cast<size_t>(i)].inputs), weight);
  }
  return taken_gradients(model);
}

std::vector<Tensor> tree_sum(const std::vector<std::vector<Tensor>>& of_leaves, const Range& leaves) {
  std::vector<Tensor> sums;
  if (leaves.hi - leaves.lo == 1) {
    for (const Tensor& t : of_leaves[static_cast<size_t>(leaves.lo)]) {
      sums.push_back(t ? like(t) : t);
      if (t) copy(sums.back(), t);
    }
    return sums;
  }
  const int64_t middle = middle_of(leaves);
  sums = tree_sum(of_leaves, {leaves.lo, middle});
  const std::vector<Tensor> right = tree_sum(of_leaves, {middle, leaves.hi});
  for (size_t i = 0; i < sums.size(); ++i)
    if (sums[i]) add_to(sums[i], right[i]);
  return sums;
}

std::vector<Tensor> step_gradients(Model& model, const std::vector<MicroBatch>& all, int64_t max_ranks, Device device) {
  Optimizer optimizer(model.trained_parameters(), {});
  TrainStep(model, optimizer, device, {.seed = kSeed, .max_ranks = max_ranks}).forward_backward(all, kStep);
  return taken_gradients(model);
}

// Copies each gradient when it is complete.
struct Notes : GradientListener {
  std::map<const Parameter*, Tensor> gradients;
  bool twice = false;
  void completed(const Parameter& p) override {
    Tensor now = p.grad ? like(p.grad) : Tensor();
    if (now) copy(now, p.grad);
    twice |= !gradients.emplace(&p, now).second;
  }
};

void check_completion(Model& model, const MicroBatch& micro_batch, TapeOptions options) {
  const Training training;
  Notes notes;
  {
    Tape tape(options);
    set_random_state({kSeed, 0, 0});
    tape.backward(model.loss(micro_batch.inputs), {}, &notes);
  }
  CHECK_FALSE(notes.twice);
  int64_t reached = 0;
  for (const Parameter* p : model.parameters()) {
    CAPTURE(p->path);
    CHECK((notes.gradients.contains(p) || !p->grad));
    CHECK((!p->frozen || !notes.gradients.contains(p)));
    if (!p->grad) continue;
    ++reached;
    REQUIRE(notes.gradients[p]);
    CHECK(same_bits(notes.gradients[p], p->grad));
  }
  CHECK(reached > 0);
  taken_gradients(model);
}

bool are_all_bf16(const Tensor& t) { return same_bits(convert(convert(t, Dtype::bf16), Dtype::f32), t); }

void check_f32_sums(Model& model, Device device) {
  const int64_t count = device == Device::cuda_emulated ? 2 : 4;
  const std::vector<MicroBatch> micro_batches = small_micro_batches(model.config(), count, device);
  const auto gradients_of = [&](const std::vector<MicroBatch>& some) {
    TrainStep(model, device, 1).forward_backward(some, 0);
    return taken_gradients(model);
  };
  const std::vector<Parameter*> parameters = model.parameters();
  std::vector<Values> sums(parameters.size()), sizes(parameters.size());  // gradients, their absolute values
  std::vector<int64_t> narrow(parameters.size());                         // gradients that bf16 holds
  for (const MicroBatch& one : micro_batches) {
    const std::vector<Tensor> gradients = gradients_of({one});
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!gradients[i]) continue;
      const std::string path = parameters[i]->path;
      CAPTURE(path);
      REQUIRE(gradients[i].dtype() == Dtype::f32);
      const Values values = values_of(gradients[i]);
      sums[i].resize(values.size()), sizes[i].resize(values.size());
      for (size_t e = 0; e < values.size(); ++e)
        sums[i][e] += values[e] / static_cast<double>(count), sizes[i][e] += std::abs(values[e]) / static_cast<double>(count);
      narrow[i] += are_all_bf16(gradients[i]);
    }
  }
  const std::vector<Tensor> together = gradients_of(micro_batches);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string path = parameters[i]->path;
    CAPTURE(path);
    REQUIRE(static_cast<bool>(together[i]) == !sums[i].empty());
    if (!together[i]) continue;
    const bool is_zero = std::all_of(sizes[i].begin(), sizes[i].end(), [](double size) { return size == 0; });
    CHECK((is_zero || narrow[i] < count));  // one of few terms, or whose terms cancel, may be a short number
    CHECK(error_of(together[i], sums[i], sizes[i]) < 64 * unit(Dtype::f32));
  }
}

}  // namespace

TEST_CASE("leaves: a step's gradient is the sum of its leaves along the tree, in all bits") {
  on_training_devices([](Device device) {
    const int64_t count = device == Device::cuda_emulated ? 4 : 7;
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (const bool recompute : {false, true}) {
        if (device == Device::cuda_emulated && (recompute || dtype == Dtype::f32)) continue;  // nothing new, and slow
        ModelConfig config = small_model({.dropout = 0.2});
        resolve(config);
        Model model = made(config, dtype, device, recompute);
        const std::vector<MicroBatch> all = small_micro_batches(config, count, device);
        for (const int64_t max_ranks : device == Device::cuda_emulated ? std::vector<int64_t>{3} : std::vector<int64_t>{1, 2, 3, 4, 7}) {
          CAPTURE(max_ranks);
          std::vector<std::vector<Tensor>> of_leaves;
          for (int64_t leaf = 0; leaf < max_ranks; ++leaf)
            of_leaves.push_back(leaf_gradients(model, all, Share::of_rank(count, max_ranks).micro_batches(leaf), device));
          CHECK(same_bits(step_gradients(model, all, max_ranks, device), tree_sum(of_leaves, {0, max_ranks})));
        }
      }
  });
}

TEST_CASE("leaves: other numbers of them have other bits, and too few micro-batches are an error") {
  ModelConfig config = small_model({});
  resolve(config);
  Model model = made(config, Dtype::f32, Device::cpu);
  const std::vector<MicroBatch> all = small_micro_batches(config, 8, Device::cpu);
  const std::vector<Tensor> one = step_gradients(model, all, 1, Device::cpu), two = step_gradients(model, all, 2, Device::cpu),
                            four = step_gradients(model, all, 4, Device::cpu);
  CHECK_FALSE(same_bits(one, two));
  CHECK_FALSE(same_bits(two, four));
  CHECK(same_bits(four, step_gradients(model, all, 4, Device::cpu)));
  CHECK(message_of([&] { step_gradients(model, all, 9, Device::cpu); }) == "train step: max_ranks is 9, but there are 8 micro-batches");
}

// A view of a parameter or a block that is computed again may stand between it and the product that reads it.
TEST_CASE("bf16: the gradients of several micro-batches are sums in f32, for every parameter of every family") {
  for (const Device device : {Device::cpu, Device::cuda_emulated})
    for (const Variant& v : every_model()) {
      if (!runs_on(device, v)) continue;
      if (device == Device::cuda_emulated && v.config.family != family_of<Decoder> && !test::everything()) continue;
      const std::string device_name = name_of(device);
      CAPTURE(device_name);
      CAPTURE(v.name);
      Model model = made(v.config, Dtype::bf16, device);
      check_f32_sums(model, device);
      model.recompute_blocks(true);
      if (device == Device::cpu) check_f32_sums(model, device);
    }
}

TEST_CASE("completion: each trained parameter of every model completes once, with its whole gradient") {
  for (const Variant& v : every_model())
    for (const bool recompute : {false, true})
      for (const bool tie : {false, true}) {
        if (recompute != tie && !test::everything()) continue;
        CAPTURE(v.name);
        CAPTURE(recompute);
        ModelConfig config = v.config;
        config.output.tie = tie;
        Model model = made(config, Dtype::f32, Device::cpu, recompute);
        const MicroBatch micro_batch = small_micro_batches(config, 1, Device::cpu)[0];
        check_completion(model, micro_batch, {});
        model.parameters()[0]->frozen = true;
        check_completion(model, micro_batch, {.find_nonfinite = true});
      }
}
