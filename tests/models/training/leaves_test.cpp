// Steps that are divided into leaves, in one process: the gradient is the sum of the leaves along the tree, in all bits.
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

std::vector<Tensor> taken_gradients(Model& model) {
  std::vector<Tensor> all;
  for (Parameter* p : model.parameters()) all.push_back(std::exchange(p->grad, {}));
  return all;
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

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  const auto equal = [](const Tensor& x, const Tensor& y) { return x && y ? same_bits(x, y) : !x && !y; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
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

}  // namespace

TEST_CASE("leaves: a step's gradient is the sum of its leaves along the tree, in all bits") {
  on_training_devices([](Device device) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (const bool recompute : {false, true}) {
        if (device == Device::cuda_emulated && recompute) continue;  // slow, and nothing new
        ModelConfig config = small_model({.dropout = 0.2});
        resolve(config);
        Model model = made(config, dtype, device, recompute);
        const std::vector<MicroBatch> all = small_micro_batches(config, 7, device);
        for (const int64_t max_ranks : {1, 2, 3, 4, 7}) {
          CAPTURE(max_ranks);
          std::vector<std::vector<Tensor>> of_leaves;
          for (int64_t leaf = 0; leaf < max_ranks; ++leaf)
            of_leaves.push_back(leaf_gradients(model, all, Share::of_rank(7, max_ranks).micro_batches(leaf), device));
          CHECK(same(step_gradients(model, all, max_ranks, device), tree_sum(of_leaves, {0, max_ranks})));
        }
      }
  });
}

TEST_CASE("leaves: other numbers of them have other bits") {
  ModelConfig config = small_model({});
  resolve(config);
  Model model = made(config, Dtype::f32, Device::cpu);
  const std::vector<MicroBatch> all = small_micro_batches(config, 8, Device::cpu);
  const std::vector<Tensor> one = step_gradients(model, all, 1, Device::cpu), two = step_gradients(model, all, 2, Device::cpu),
                            four = step_gradients(model, all, 4, Device::cpu);
  CHECK_FALSE(same(one, two));
  CHECK_FALSE(same(two, four));
  CHECK(same(four, step_gradients(model, all, 4, Device::cpu)));
}

TEST_CASE("leaves: every family is trained with four, and one process has them") {
  for (const Variant& v : every_model()) {
    CAPTURE(v.name);
    Model model = made(v.config, Dtype::f32, Device::cpu);
    const std::vector<MicroBatch> all = small_micro_batches(v.config, 4, Device::cpu);
    Optimizer optimizer(model.trained_parameters(), {});
    TrainStep step(model, optimizer, Device::cpu, {.seed = kSeed, .clip = 1, .max_ranks = 4});
    for (int64_t i = 0; i < 2; ++i) {
      const auto [loss, norm] = step.run(all, i, 1e-3);
      CHECK(std::isfinite(loss));
      CHECK(norm > 0);
    }
  }
}

TEST_CASE("leaves: too few micro-batches are an error") {
  ModelConfig config = small_model({});
  resolve(config);
  Model model = made(config, Dtype::f32, Device::cpu);
  const auto all = small_micro_batches(config, 2, Device::cpu);
  CHECK(message_of([&] { step_gradients(model, all, 3, Device::cpu); }) == "train step: max_ranks is 3, but there are 2 micro-batches");
}

TEST_CASE("completion: each trained parameter of every model completes once, with its whole gradient") {
  for (const Variant& v : every_model())
    for (const bool recompute : {false, true})
      for (const bool tie : {false, true}) {
        CAPTURE(v.name);
        CAPTURE(recompute);
        ModelConfig config = v.config;
        config.output.tie = tie;
        Model model = made(config, Dtype::f32, Device::cpu, recompute);
        const MicroBatch micro_batch = small_micro_batches(config, 1, Device::cpu)[0];
        check_completion(model, micro_batch, {});
        check_completion(model, micro_batch, {.find_nonfinite = true});
        model.parameters()[0]->frozen = true;
        check_completion(model, micro_batch, {});
      }
}
