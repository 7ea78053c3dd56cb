// The memory of a training step: the message of a full device, and later steps that request none from the system.
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "core/cpu/parallel.h"
#include "core/memory/memory.h"
#include "cuda/device/device_memory.h"
#include "models/layers/layers.h"
#include "models/model.h"
#include "models/training/train_step.h"
#include "ops/elements/activations.h"
#include "tests/models/training/small_training.h"

using namespace ricci;

namespace {

// The emulated GPU with the memory that a test gives it.
class Small final : public Allocator {
 public:
  Small() { set_allocator(Device::cuda_emulated, this); }
  ~Small() override { set_allocator(Device::cuda_emulated, &emulated_memory()); }
  void* allocate(int64_t bytes) override {
    if (memory_use(Device::cuda_emulated).current + bytes > most) return nullptr;
    return emulated_memory().allocate(bytes);
  }
  void release(void* data, int64_t bytes) override { emulated_memory().release(data, bytes); }
  std::string room() const override { return "7 bytes free"; }

  int64_t most = std::numeric_limits<int64_t>::max();
};

int64_t used() { return memory_use(Device::cuda_emulated).current; }

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

ModelConfig small() {
  ModelConfig c;
  c.vocab = 11, c.ctx = 7, c.d = 12, c.settings<Sdp>().heads = 3, c.layers = 2;
  return c;
}

struct Setup {
  Model model{small()};
  Tensor ids_bc = ids_of(std::vector<int64_t>(14, 3), {2, 7}, Device::cuda_emulated);
  Setup() {
    model.init(1);
    model.place(Dtype::f32, Device::cuda_emulated);
  }
};

}  // namespace

TEST_CASE("out of memory: in the forward pass the line names the op, the one before it, and the memory held by purpose") {
  Small memory;
  Setup s;
  const Optimizer optimizer(s.model.parameters(), {});
  const Training training;
  const Tape tape;
  const Tensor h = gelu(s.model.logits({s.ids_bc}));
  const int64_t parameters = s.model.parameter_count() * 4, together = used();
  memory.most = together + 100;
  const std::string line = message_of([&] { gelu(h); });
  CAPTURE(line);
  CHECK(line.starts_with("out of memory on cuda_emulated: activations: forward ("));
  CHECK(has(line, "ops/elements/activations.cu:"));
  CHECK(has(line, ", after gelu ("));
  CHECK(has(line, "models/out_of_memory_test.cpp:"));
  CHECK(has(line, "), asked for 616 bytes; 7 bytes free; held: "));
  CHECK(has(line, "parameters " + show_bytes(parameters)));
  CHECK(has(line, "optimizer state " + show_bytes(2 * parameters)));
  CHECK_FALSE(has(line, "gradients"));
  CHECK(line.ends_with("together " + show_bytes(together)));
  // Kept parameters are parameters, so activations are the other tensors that the tape keeps; ids and the logits are others.
  CHECK(has(line, "activations "));
  CHECK(has(line, "other "));
}

#if !defined(__SANITIZE_ADDRESS__)  // its allocator ends the program, and has a block of memory per tensor
TEST_CASE("out of memory: a model larger than the machine says so while it is built") {
  ModelConfig c = small();
  c.d = 1 << 20, c.settings<Sdp>().heads = 1;
  const std::string line = message_of([&] { const Model model(c); });
  CAPTURE(line);
  CHECK(line.starts_with("out of memory on cpu: "));
  CHECK(has(line, " asked for 12.0 TiB (13194139533312 bytes); this machine has "));
}

namespace {

// The CPU's memory, with a count of new blocks.
class CountsNew final : public Allocator {
 public:
  CountsNew() : base_(allocator_of(Device::cpu)) { set_allocator(Device::cpu, this); }
  ~CountsNew() override { set_allocator(Device::cpu, &base_); }
  void* allocate(int64_t bytes) override {
    void* const block = base_.allocate(bytes);
    const std::lock_guard locked(lock_);
    blocks_.insert(block);
    return block;
  }
  void release(void* data, int64_t bytes) override { base_.release(data, bytes); }
  size_t blocks() const { return blocks_.size(); }

 private:
  Allocator& base_;
  std::mutex lock_;
  std::set<void*> blocks_;
};

struct AfterStep {
  MemoryUse memory;
  size_t blocks;
};

// Bytes held, and distinct blocks handed out, after each of `steps` steps as in ricci train.
std::vector<AfterStep> train(Preset preset, Dtype dtype, int64_t accumulation, int64_t steps) {
  apps::TrainConfig config;
  config.batch = 4, config.accumulation = accumulation;
  const SmallModel of{.preset = preset, .context = 16, .d = 24, .dropout = 0.1};
  Model model(small_model(of));
  model.init(1);
  model.place_for_training(dtype, Device::cpu);
  Optimizer optimizer(model.parameters(), config.optimizer);
  TrainStep train_step(model, optimizer, Device::cpu, apps::step_options(config));
  const RandomCrops crops = crops_of(config, of.context);
  reset_peak(Device::cpu);
  const CountsNew counts;
  std::vector<AfterStep> after;
  for (int64_t step = 0; step < steps; ++step) {
    train_step.run(micro_batches_of(crops, config, step, Device::cpu), step, 1e-3);
    after.push_back({memory_use(Device::cpu), counts.blocks()});
  }
  return after;
}

}  // namespace

TEST_CASE("steady memory: steps 3 to 20 ask the system for no memory, and hold no more than the second") {
  const int threads = thread_count();
  set_thread_count(1);  // the number of working threads, each with its memory, differs between steps
  for (Preset preset : {Preset::gpt, Preset::msa})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (int64_t accumulation : {1, 2}) {
        const std::vector<AfterStep> after = train(preset, dtype, accumulation, 20);
        CAPTURE(std::string(name_of(preset)));
        CAPTURE(accumulation);
        CHECK(after[0].blocks > 0);
        for (size_t step = 2; step < 20; ++step) {
          CHECK(after[step].blocks == after[1].blocks);
          CHECK(after[step].memory.current == after[1].memory.current);
          CHECK(after[step].memory.peak == after[1].memory.peak);
        }
      }
  set_thread_count(threads);
}
#endif

TEST_CASE("out of memory: in the backward the line names the op that was being differentiated, at every allocation") {
  Small memory;
  Setup s;
  const Training training;
  int failures = 0;
  for (int64_t most = 0;; most += 256) {
    memory.most = std::numeric_limits<int64_t>::max();
    for (const Parameter* p : s.model.parameters()) p->grad = {};
    Tape tape;
    const Tensor loss = s.model.loss({s.ids_bc, s.ids_bc});
    const Tensor dloss = like(loss);
    fill(dloss, 1);
    memory.most = used() + most;
    const std::string line = message_of([&] { tape.backward(loss, dloss); });
    if (line == "no error") break;
    CAPTURE(line);
    ++failures;
    CHECK(has(line, ", in the backward of "));
    CHECK(has(line, "models/"));
    if (most > 4096) CHECK(has(line, "gradients "));
  }
  CHECK(failures > 3);
}

TEST_CASE("out of memory: a holder counts while it lives, on its thread, and memory held twice counts once") {
  Small memory;
  const auto held = [&] {
    memory.most = used();
    const std::string line = message_of([&] { Tensor({1}, Dtype::f32, Device::cuda_emulated); });
    memory.most = std::numeric_limits<int64_t>::max();
    return line.substr(line.find("held: "));
  };
  const std::string before = held();  // buffers that ops keep
  CHECK(before == (used() ? "held: other " + show_bytes(used()) + ", " : "held: ") + "together " + show_bytes(used()));
  const int64_t own = used();
  {
    const Setup s;
    const std::string rest = ", other " + show_bytes(own + s.ids_bc.bytes()) + ", together " + show_bytes(used());
    const std::string parameters = "held: parameters " + show_bytes(used() - own - s.ids_bc.bytes()) + rest;
    CHECK(held() == parameters);
    Model moved = Model(small());
    CHECK(held() == parameters);
    const Optimizer twice(const_cast<Setup&>(s).model.parameters(), OptimizerConfig::with(Sgd{.momentum = 0}));
    CHECK(held() == parameters);
    std::thread([&] { CHECK(held() == "held: other " + show_bytes(used()) + ", together " + show_bytes(used())); }).join();
  }
  CHECK(held() == before);
}

TEST_CASE("bytes for people") {
  CHECK(show_bytes(0) == "0 bytes");
  CHECK(show_bytes(1023) == "1023 bytes");
  CHECK(show_bytes(1024) == "1.0 KiB");
  CHECK(show_bytes(1024 * 1024 - 1) == "1.0 MiB");
  CHECK(show_bytes(805306368) == "768.0 MiB");
  CHECK(show_bytes(int64_t{150} << 30) == "150.0 GiB");
}
