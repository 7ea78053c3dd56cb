// Checkpoints of training, without the program around it: every optimizer's state is restored, and a mismatch is an error.
// tests/apps/hostile/kills.sh tests complete runs.
#include "models/training/checkpoint.h"

#include <doctest/doctest.h>

#include <cstring>

#include "autograd/tape.h"
#include "core/philox.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/layers.h"
#include "tests/data/files.h"
#include "tests/thread_ranks.h"

using namespace ricci;
using namespace test_data;

namespace {

ModelConfig small_config() {
  ModelConfig config;
  config.vocab = 11, config.d = 8, config.settings<Sdp>().heads = 2, config.layers = 2, config.ctx = 4, config.block.dropout = 0.3;
  return config;
}

// A model in training. Its loss after each step shows if two of them are in the same state.
struct Trainee {
  Model model;
  Optimizer optimizer;

  explicit Trainee(
      const OptimizerConfig& config, uint64_t seed = 5, Dtype dtype = Dtype::f32, bool freezes = false, Device device = Device::cpu)
      : model(placed(seed, dtype, freezes, device)), optimizer(model.trained_parameters(), config) {}

  static Model placed(uint64_t seed, Dtype dtype, bool freezes, Device device) {
    Model model(small_config(), seed);
    model.place_for_training(dtype, device);
    model.each_parameter([&](const std::string& path, Parameter& p) { p.frozen = freezes && path.starts_with("blocks.0."); });
    return model;
  }
  double step() {
    Tensor ids_bc({2, 4}, Dtype::i64), targets_bc({2, 4}, Dtype::i64);
    for (int i = 0; i < 8; ++i) ids_bc.data<int64_t>()[i] = i % 5, targets_bc.data<int64_t>()[i] = (i + 3) % 11;
    const Training training;
    Tape tape;
    const Tensor loss = model.loss({ids_bc, targets_bc});
    tape.backward(loss);
    optimizer.step(0.05);
    return item(loss);
  }
};

OptimizerConfig sgd() { return OptimizerConfig::with(Sgd{.momentum = 0.9}); }

void save(const Checkpoints& checkpoints, int64_t step) {
  Tensor one({1}, Dtype::f32);
  one.data<float>()[0] = 1;
  save_safetensors(checkpoints.path(step), {{"w", one}});
}

}  // namespace

TEST_CASE("checkpoint: training continues with the same losses, bit for bit, under every optimizer and dtype") {
  const ScratchFolder folder;
  const std::string path = folder / "a.safetensors";
  for (const OptimizerConfig& config : {OptimizerConfig(), OptimizerConfig::with(Adam()), sgd(), OptimizerConfig::with(Muon())}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
      CAPTURE(std::string(name_of(dtype)));
      set_random_state({7, 0});
      Trainee first(config, 5, dtype);
      for (int i = 0; i < 3; ++i) first.step();
      save_checkpoint(path, first.model, first.optimizer, {3, 2, 2.25, UINT64_MAX});
      const RandomState random = random_state();
      const double fourth = first.step(), fifth = first.step();

      set_random_state({1, 1});
      Trainee second(config, 6, dtype);  // other weights
      const Tensor value = second.model.parameters()[0]->value;
      const TrainState state = load_checkpoint(SafetensorsFile(path), second.model, second.optimizer);
      CHECK(state.step == 3);
      CHECK(state.best_step == 2);
      CHECK(state.best_loss == 2.25);
      CHECK(state.text_hash == UINT64_MAX);
      CHECK(second.optimizer.steps() == 3);
      CHECK(second.model.parameters()[0]->value.raw() == value.raw());  // filled in place, for a recorded step
      CHECK(random_state() == random);
      CHECK(second.step() == fourth);
      CHECK(second.step() == fifth);

      save_checkpoint(folder / "b.safetensors", first.model, first.optimizer, state);
      save_checkpoint(folder / "c.safetensors", second.model, second.optimizer, state);
      CHECK(read_file(folder / "b.safetensors") == read_file(folder / "c.safetensors"));
    }
  }
}

TEST_CASE("checkpoint: the state before any evaluation") {
  const ScratchFolder folder;
  Trainee trainee(sgd());
  save_checkpoint(folder / "a", trainee.model, trainee.optimizer, {});
  TrainState state = load_checkpoint(SafetensorsFile(folder / "a"), trainee.model, trainee.optimizer);
  CHECK(state.best_step == -1);
  state.step = 5;
  state.note_evaluation(std::numeric_limits<double>::quiet_NaN());
  CHECK(state.best_step == -1);
  state.note_evaluation(3.5);
  CHECK(state.best_step == 5);
  state.step = 6;
  state.note_evaluation(3.5);
  CHECK(state.best_step == 5);
  state.note_evaluation(3.25);
  CHECK(state.best_step == 6);
  CHECK(state.best_loss == 3.25);
}

TEST_CASE("checkpoint: errors name the tensor") {
  const ScratchFolder folder;
  const std::string path = folder / "a";
  Trainee adam({}), other(sgd()), twice({}, 5, Dtype::f64);
  save_checkpoint(path, adam.model, adam.optimizer, {1});
  const auto load_into = [&](Trainee& t) { return error_of([&] { load_checkpoint(SafetensorsFile(path), t.model, t.optimizer); }); };
  CHECK(contains(load_into(other), ".momentum ["));
  CHECK(contains(load_into(other), " is missing"));
  CHECK(contains(load_into(twice), " is f32, expected f64"));
  save_checkpoint(path, other.model, other.optimizer, {1});
  Trainee plain(OptimizerConfig::with(Sgd{.momentum = 0}));
  CHECK(contains(load_into(plain), ".momentum ["));
  CHECK(contains(load_into(plain), "does not belong to this training run"));

  const SafetensorsFile sound(path);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const std::string& name : sound.names()) tensors.emplace_back(name, sound.load(name));
  for (const char* key :
      {"step", "best_step", "best_loss", "text_hash", "optimizer_steps", "random_seed", "random_stream", "random_part"}) {
    Metadata metadata = sound.metadata();
    const std::string text = metadata[key];
    for (const std::string& wrong : {text + "x", std::string(), std::string("18446744073709551616e999")}) {
      metadata[key] = wrong;
      save_safetensors(path, tensors, metadata);
      CHECK(load_into(other) == format_message("{}: metadata: {} is '{}', expected a number", {path, key, wrong}));
    }
    metadata.erase(key);
    save_safetensors(path, tensors, metadata);
    CHECK(load_into(other) == path + ": " + key + " is missing from its metadata");
  }
}

TEST_CASE("checkpoint: a step before its evaluation, the end of the schedule, and impossible numbers") {
  const ScratchFolder folder;
  Trainee trainee(sgd());
  const TrainState state{.step = 7, .best_step = 7, .schedule_steps = 40, .awaits_evaluation = true};
  save_checkpoint(folder / "a", trainee.model, trainee.optimizer, state, {{"more", "text"}});
  const SafetensorsFile file(folder / "a");
  CHECK(read_train_state(file).awaits_evaluation);
  CHECK(read_train_state(file).schedule_steps == 40);
  CHECK(file.metadata().at("more") == "text");
  save_checkpoint(folder / "b", trainee.model, trainee.optimizer, {.step = 7});
  CHECK_FALSE(read_train_state(SafetensorsFile(folder / "b")).awaits_evaluation);
  for (const auto& [key, value] : {std::pair{"step", "-1"}, {"step", "9223372036854775807"}, {"step", "6"}, {"best_step", "8"}}) {
    Metadata metadata = file.metadata();
    metadata[key] = value;
    save_safetensors(folder / "c", {}, metadata);
    CHECK(contains(error_of([&] { read_train_state(SafetensorsFile(folder / "c")); }), "invalid metadata"));
  }
}

TEST_CASE("checkpoints: names, order, the newest sound one; the newest and the best are kept") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "some");
  const Checkpoints none{folder / "none"}, some{folder / "some"};
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& line) { warnings.push_back(line); };
  const auto newest = [&] {
    const auto found = some.newest_sound(warn);
    return found ? found->path() : "none";
  };
  const auto path = [&](int64_t step) { return folder / ("some/" + Checkpoints::name_of(step)); };
  CHECK(none.steps().empty());
  CHECK_FALSE(none.newest_sound(warn).has_value());
  CHECK(newest() == "none");
  CHECK(some.path(1234) == folder / "some/step-00001234.safetensors");

  for (const int64_t step : {5, 100, 20, 123456789}) save(some, step);
  for (const char* other : {"step-7.safetensors", "step-00000007.safetensors.bak", ".step-00000007.safetensors.tmp-1", "notes"})
    folder.write(std::string("some/") + other, "");
  CHECK(some.steps() == std::vector<int64_t>{5, 20, 100, 123456789});
  CHECK(newest() == path(123456789));
  CHECK(warnings.empty());

  std::filesystem::create_symlink("nowhere", path(200000000));
  CHECK(newest() == path(123456789));
  std::filesystem::remove(path(200000000));

  for (const int64_t step : {100, 123456789}) std::filesystem::resize_file(path(step), 40);
  CHECK(newest() == path(20));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].starts_with(path(123456789) + ": "));
  CHECK(warnings[0].ends_with("; using the checkpoint of step 20"));
  for (const int64_t step : {5, 20}) std::filesystem::resize_file(path(step), 0);
  CHECK(contains(error_of([&] { some.newest_sound(warn); }), "all 4 checkpoints are damaged"));

  std::filesystem::create_directory(folder / "kept");
  const Checkpoints kept{folder / "kept"};
  for (const int64_t step : {5, 20, 21, 22, 23, 123456789}) save(kept, step);
  kept.prune({.step = 22, .best_step = 5}, 2);
  CHECK(kept.steps() == std::vector<int64_t>{5, 21, 22});
  const SafetensorsFile open(kept.path(21));
  kept.prune({.step = 22, .best_step = 22}, 1);
  CHECK(kept.steps() == std::vector<int64_t>{22});
  CHECK_NOTHROW(open.verify());  // it was opened before it was removed
}

TEST_CASE("share_training: every rank has the state of rank 0, and continues with its losses, bit for bit") {
  const ScratchFolder folder;
  const TrainState state_of_first{.step = 3,
      .best_step = 2,
      .best_loss = 2.25,
      .text_hash = UINT64_MAX,
      .schedule_steps = 40,
      .awaits_evaluation = true,
      .data_place = "a b=1"};
  for (const OptimizerConfig& config : {OptimizerConfig(), sgd()})
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (const bool is_new : {true, false})
        for (const bool freezes : {true, false}) {
          std::vector<double> losses(3);
          const auto errors = on_ranks(3, [&](Ranks& ranks) {
            const auto rank = static_cast<size_t>(ranks.rank());
            set_random_state({7 + rank, rank});
            Trainee trainee(config, 5 + rank, dtype, freezes);  // other weights on each rank
            for (int i = 0; i < 3 && rank == 0 && !is_new; ++i) trainee.step();
            TrainState state = rank == 0 ? state_of_first : TrainState();
            share_training(ranks, trainee.model, trainee.optimizer, state);
            save_checkpoint(folder / ("shared" + std::to_string(rank)), trainee.model, trainee.optimizer, state);
            losses[rank] = trainee.step();
            save_checkpoint(folder / ("next" + std::to_string(rank)), trainee.model, trainee.optimizer, state);
          });
          for (const std::string& error : errors) CHECK(error == "");
          for (const std::string rank : {"1", "2"})
            for (const std::string name : {"shared", "next"}) CHECK(read_file(folder / (name + rank)) == read_file(folder / (name + "0")));
          CHECK(losses == std::vector<double>(3, losses[0]));
          const SafetensorsFile shared(folder / "shared2");
          CHECK(shared.metadata().at("optimizer_steps") == (is_new ? "0" : "3"));
          CHECK(shared.metadata().at("random_seed") == "7");
          CHECK(read_train_state(shared).data_place == "a b=1");
          CHECK(read_file(folder / "shared0") != read_file(folder / "next0"));
        }
}

TEST_CASE("share_training: through the host's memory from device to device; one rank keeps its state") {
  const ScratchFolder folder;
  const auto errors = on_ranks(2, [&](Ranks& ranks) {
    const auto rank = static_cast<size_t>(ranks.rank());
    Trainee trainee({}, 5 + rank, Dtype::bf16, false, Device::cuda_emulated);
    TrainState state{.step = static_cast<int64_t>(rank)};
    share_training(ranks, trainee.model, trainee.optimizer, state);
    save_checkpoint(folder / std::to_string(rank), trainee.model, trainee.optimizer, state);
    trainee.model.each_parameter([](const std::string& path, Parameter& p) {
      const Tensor rounded = to_host(convert(p.master, Dtype::bf16)), value = to_host(p.value);
      if (std::memcmp(rounded.raw(), value.raw(), static_cast<size_t>(value.bytes())) != 0)
        fail("{} is not the rounding of its master", {path});
    });
  });
  for (const std::string& error : errors) CHECK(error == "");
  CHECK(read_file(folder / "0") == read_file(folder / "1"));

  Trainee only({});
  TrainState state{.step = 9};
  save_checkpoint(folder / "before", only.model, only.optimizer, state);
  share_training(Ranks::alone(), only.model, only.optimizer, state);
  save_checkpoint(folder / "after", only.model, only.optimizer, state);
  CHECK(read_file(folder / "before") == read_file(folder / "after"));
}
