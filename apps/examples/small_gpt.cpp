// A small GPT learns a short text in memory and then writes it. This file shows only the loop; train.cpp reads a file.
#include <ricci/ricci.h>

using namespace ricci;

// Tokens are bytes here; the ids of any tokenizer will do.
const std::string kText =
    "This is the farmer sowing his corn, that kept the cock that crowed in the morn, that waked the priest all shaven and shorn, "
    "that married the man all tattered and torn, that kissed the maiden all forlorn, that milked the cow with the crumpled horn, "
    "that tossed the dog, that worried the cat, that killed the rat, that ate the malt, that lay in the house that Jack built. ";
constexpr int64_t kContext = 64, kBatch = 16, kSteps = 400;

// Sequences that begin at random positions, and the next tokens as targets.
Batch batch(const std::vector<int64_t>& ids, int64_t step) {
  std::vector<int64_t> inputs, targets;
  for (int64_t b = 0; b < kBatch; ++b) {
    const auto first =
        ids.begin() + static_cast<int64_t>(index_below(ids.size() - kContext, Philox{1, 0}, static_cast<uint64_t>(step * kBatch + b)));
    inputs.insert(inputs.end(), first, first + kContext);
    targets.insert(targets.end(), first + 1, first + 1 + kContext);
  }
  return make_batch(tensor_of(inputs, {kBatch, kContext}), tensor_of(targets, {kBatch, kContext}));
}

int main() {
  std::vector<int64_t> ids;
  for (int round = 0; round < 2; ++round) ids.insert(ids.end(), kText.begin(), kText.end());  // the last character is followed by the first
  ModelConfig config;
  config.vocab = 128;
  config.ctx = kContext;
  config.d = 64;
  config.layers = 2;
  config.settings<Sdp>().heads = 4;
  const Device device = available(Device::cuda) ? Device::cuda : Device::cpu;
  Model model(config, 1);  // the seed of the initial weights
  model.place_for_training(Dtype::f32, device);
  Optimizer optimizer(model.parameters(), {});
  TrainStep train(model, optimizer, device, {.seed = 1, .clip = 1});
  const Schedule schedule{.lr = 3e-3, .min_lr = 3e-4, .warmup = 20};
  for (int64_t step = 0; step < kSteps; ++step) {
    const StepResult result = train.run({batch(ids, step)}, step, schedule.rate(step, kSteps));
    if (step % 100 == 99) std::printf("step %lld: loss %.2f\n", static_cast<long long>(step + 1), result.loss);
  }

  const std::string prompt = "This is the farmer ";
  std::printf("%s", prompt.c_str());
  generate(model, std::vector<int64_t>(prompt.begin(), prompt.end()), 105, {.temperature = 0}, device,
      [](int64_t id) { return std::putchar(static_cast<int>(id)) != EOF; });
  std::puts("");
}
