// Trains a GPT on the characters of a text file, and resumes where it stopped: the counterpart of nanoGPT's train.py.
//   train TEXT FOLDER [STEPS]
// small_gpt.cpp is only the loop. A long training run needs three more things: held-out text, since the training loss falls even if the
// model only memorizes; a learning rate that falls, so the last steps do not undo each other; and checkpoints, to survive a crash.
#include <ricci/ricci.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

using namespace ricci;

constexpr int64_t kContext = 64, kBatch = 12, kInterval = 100, kSeed = 1;

struct Corpus {
  std::string characters;  // one byte each, ordered by id
  std::vector<int64_t> train, held_out;
};

Corpus read_corpus(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.size() < 20 * kContext) fail("{}: cannot be read, or has fewer than {} characters", {path, 20 * kContext});
  const std::set<char> distinct(text.begin(), text.end());
  Corpus corpus{{distinct.begin(), distinct.end()}, {}, {}};
  const size_t split = text.size() * 9 / 10;
  for (size_t i = 0; i < text.size(); ++i)
    (i < split ? corpus.train : corpus.held_out).push_back(static_cast<int64_t>(corpus.characters.find(text[i])));
  return corpus;
}

// One row for each start. The target of a token is the token after it.
Batch batch_at(const std::vector<int64_t>& ids, const std::vector<int64_t>& starts) {
  std::vector<int64_t> inputs, targets;
  for (const int64_t start : starts) {
    inputs.insert(inputs.end(), ids.begin() + start, ids.begin() + start + kContext);
    targets.insert(targets.end(), ids.begin() + start + 1, ids.begin() + start + 1 + kContext);
  }
  const Shape shape{std::ssize(starts), kContext};
  return make_batch(tensor_of(inputs, shape), tensor_of(targets, shape));
}

// The rows depend only on the seed and the step, so a resumed run sees the same rows as one that never stopped.
Batch training_batch(const std::vector<int64_t>& ids, int64_t step) {
  std::vector<int64_t> starts;
  for (int64_t row = 0; row < kBatch; ++row)
    starts.push_back(
        static_cast<int64_t>(index_below(ids.size() - kContext, Philox{kSeed, 0}, static_cast<uint64_t>(step * kBatch + row))));
  return batch_at(ids, starts);
}

// Nats per character of the held-out text, in windows that do not overlap.
double held_out_loss(const Model& model, const std::vector<int64_t>& ids, Device device) {
  const int64_t windows = (std::ssize(ids) - 1) / kContext;
  return evaluate(model, windows, [&](int64_t i) { return to(batch_at(ids, {i * kContext}), device); }).nats_per_token;
}

ModelConfig model_config(int64_t vocabulary) {
  ModelConfig config;
  config.vocab = vocabulary;
  config.ctx = kContext;
  config.d = 128;
  config.layers = 4;
  config.settings<Sdp>().heads = 4;
  return config;
}

void train(const Corpus& corpus, const std::string& folder, int64_t steps) {
  const Device device = available(Device::cuda) ? Device::cuda : Device::cpu;
  Model model(model_config(std::ssize(corpus.characters)), kSeed);
  model.place_for_training(Dtype::f32, device);
  Optimizer optimizer(model.parameters(), {});
  TrainStep train_step(model, optimizer, device, {.seed = kSeed, .clip = 1});
  const Schedule schedule{.lr = 1e-3, .min_lr = 1e-4, .warmup = 100};

  // A checkpoint holds the weights, the optimizer's averages and the dropout state, so a resumed run gives bitwise identical results.
  TrainState state;
  const Checkpoints checkpoints{folder};
  std::filesystem::create_directories(folder);
  if (const auto file = checkpoints.newest_sound([](const std::string& line) { std::puts(line.c_str()); }))
    state = load_checkpoint(*file, model, optimizer);

  while (state.step < steps) {
    const double rate = schedule.rate(state.step, steps);
    const StepResult result = train_step.run({training_batch(corpus.train, state.step)}, state.step, rate);
    ++state.step;
    if (state.step % kInterval != 0 && state.step != steps) continue;
    state.note_evaluation(held_out_loss(model, corpus.held_out, device));
    std::printf("step %lld: loss %.3f, best held-out loss %.3f\n", static_cast<long long>(state.step), result.loss, state.best_loss);
    save_checkpoint(checkpoints.path(state.step), model, optimizer, state);
    checkpoints.prune(state, 2);  // keeps the last two and the best
  }
  generate(model, {corpus.train.data(), 16}, 300, {.temperature = 0.8}, device,
      [&](int64_t id) { return std::putchar(corpus.characters[static_cast<size_t>(id)]) != EOF; });
  std::puts("");
}

int main(int argc, char** argv) try {
  if (argc < 3) fail("usage: train TEXT FOLDER [STEPS]");
  train(read_corpus(argv[1]), argv[2], argc > 3 ? std::atoll(argv[3]) : 2000);
} catch (const std::exception& error) {
  std::fprintf(stderr, "train: %s\n", error.what());
  return 1;
}
