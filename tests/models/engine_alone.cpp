// A program that links only the engine trains a model from ids in memory, saves it, continues from the file, evaluates it and lets it
// write. It ends with 0 when the model has memorized its text.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "models/inference/evaluation.h"
#include "models/inference/sampling.h"
#include "models/training/checkpoint.h"
#include "models/training/schedule.h"
#include "models/training/train_step.h"

using namespace ricci;

namespace {

constexpr int64_t kVocabulary = 7, kContext = 14;

// Two sequences of a counting text: 0 1 2 ... 6 0 1 ...
Batch counting() {
  const Tensor ids_bc({2, kContext}, Dtype::i64), targets_bc({2, kContext}, Dtype::i64);
  for (int64_t i = 0; i < ids_bc.size(); ++i) {
    ids_bc.data<int64_t>()[i] = i % kVocabulary;
    targets_bc.data<int64_t>()[i] = (i + 1) % kVocabulary;
  }
  return make_batch(ids_bc, targets_bc);
}

ModelConfig small() {
  ModelConfig config;
  config.vocab = kVocabulary, config.ctx = kContext, config.d = 16, config.layers = 1;
  return config;
}

void train(Model& model, Optimizer& optimizer, int64_t first, int64_t end) {
  const Schedule schedule{.lr = 1e-2, .min_lr = 1e-3, .warmup = 5};
  TrainStep train_step(model, optimizer, Device::cpu, {.seed = 1, .clip = 1});
  for (int64_t step = first; step < end; ++step) train_step.run({counting()}, step, schedule.rate(step, end));
}

}  // namespace

int main(int, char** arguments) {
  const std::string file = std::string(arguments[0]) + ".safetensors";
  Model early(small());
  early.init(1);
  early.place_for_training(Dtype::f32, Device::cpu);
  Optimizer of_early(early.parameters(), {});
  train(early, of_early, 0, 50);
  save_checkpoint(file, early, of_early, {.step = 50});

  Model model(small());
  model.init(2);
  model.place_for_training(Dtype::f32, Device::cpu);
  Optimizer optimizer(model.parameters(), {});
  const TrainState state = load_checkpoint(SafetensorsFile(file), model, optimizer);
  std::remove(file.c_str());
  train(model, optimizer, state.step, 100);

  const Evaluation result = evaluate(model, 1, [](int64_t) { return counting(); });
  std::vector<int64_t> written;
  generate(
      model, std::vector<int64_t>{0, 1, 2, 3}, 6, {.temperature = 0}, Device::cpu, [&](int64_t id) { return written.push_back(id), true; });
  std::printf("%.4f nats per token over %lld tokens; after 3 come", result.nats_per_token, static_cast<long long>(result.tokens));
  for (int64_t id : written) std::printf(" %lld", static_cast<long long>(id));
  std::puts("");
  return state.step == 50 && result.nats_per_token < 0.1 && written == std::vector<int64_t>{4, 5, 6, 0, 1, 2} ? 0 : 1;
}
