// The texts that ranks compare; the config that rank 0 sends; frozen parameters; the loss of conversations (only answers are scored); the
// embedded text, equal in every build, so its runs continue after an update.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "apps/run/batches.h"
#include "apps/run/config.h"
#include "apps/run/corpus.h"
#include "apps/run/output.h"
#include "apps/run/processes.h"
#include "autograd/tape.h"
#include "core/files/checksum.h"
#include "data/feeds/feed.h"
#include "models/model.h"
#include "models/training/parameter_groups.h"
#include "tests/data/files.h"
#include "tests/thread_ranks.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

TrainConfig small_run(const std::vector<std::string>& more = {}) {
  std::vector<std::string> keys{"model.d=8", "model.layers=1", "model.heads=2", "model.ctx=8", "sample.tokens=0"};
  keys.insert(keys.end(), more.begin(), more.end());
  return load_config<TrainConfig>("", keys);
}

Model small() {
  ModelConfig c;
  c.vocab = 11, c.ctx = 6, c.d = 8, c.layers = 12, c.settings<Sdp>().heads = 2;
  apply_preset(c);
  return Model(c);
}

// The frozen paths.
std::vector<std::string> frozen(const std::vector<std::string>& patterns) {
  Model model = small();
  freeze_parameters(model, patterns);
  std::vector<std::string> paths;
  model.each_parameter([&](const std::string& path, const Parameter& p) {
    if (p.frozen) paths.push_back(path);
  });
  return paths;
}

constexpr int64_t kVocab = 10;

// The bytes of the loss and of all gradients, for a document of these ids, some of them scored.
std::string learnt(const std::vector<int64_t>& ids, const std::vector<uint8_t>& counts) {
  ModelConfig config;
  config.layers = 2;
  config.d = 16;
  config.ctx = 16;
  config.vocab = kVocab;
  Model model(config);
  model.init(3);
  const auto length = std::ssize(ids) - 1;
  const std::vector<int64_t> inputs(ids.begin(), ids.end() - 1);
  std::vector<int64_t> targets(ids.begin() + 1, ids.end());
  for (size_t i = 0; i < targets.size(); ++i)
    if (!counts[i + 1]) targets[i] = kNoTarget;
  Tape tape;
  const Tensor loss = model.loss({tensor_of(inputs, {1, length}), tensor_of(targets, {1, length})});
  tape.backward(loss);
  std::string bytes;
  const auto add = [&](const Tensor& t) { bytes.append(static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes())); };
  add(loss);
  model.each_parameter([&](const std::string&, const Parameter& p) {
    if (p.grad) add(p.grad);
  });
  return bytes;
}

}  // namespace

TEST_CASE("ranks of a run: a config as YAML is the same config") {
  for (const std::vector<std::string>& keys : {std::vector<std::string>{}, {"sample.prompt=\"a: b\\n#\"", "data=[a b.txt,c=d]", "lr=0.1"},
           {"order=shuffled", "weights=[]", "freeze=[tok,blocks.*.mixer]", "reduce_dtype=bf16", "accumulation=4", "schedule=wsd"},
           {"lr_of={tok: 0.1, \"*.mixer\": 0.3333333333333333, \"a b: \\\"c\": 1e-300}", "decay_of={}"},
           {"model.family=topdown", "model.bag_weights=[0.1]"}, {"optimizer=sgd", "momentum=0.5", "steps=7"}}) {
    const TrainConfig config = small_run(keys);
    const TrainConfig sent = recorded_config<TrainConfig>(to_yaml(config), "rank 0");
    CHECK(to_yaml(sent) == to_yaml(config));
    CHECK(sent.given == config.given);
  }
}

TEST_CASE("ranks of a run: a rank with another text is named") {
  const ScratchFolder folder;
  const std::string a = folder.write("a.txt", std::string(400, 'a') + "bcd\n"), b = folder.write("b.txt", std::string(401, 'a') + "bcd\n");
  const auto open = [&](int other) {
    return on_ranks(3, [&, other](Ranks& ranks) {
      const Corpus corpus = open_in_turn(ranks, small_run({"data=" + (ranks.rank() == other ? b : a)}), nullptr);
      if (!corpus.tokenizer) fail("no tokenizer", {});
    });
  };
  CHECK(open(-1) == std::vector<std::string>(3));
  const std::vector<std::string> errors = open(2);
  CHECK(contains(errors[0], "rank 2 on node has text "));
  CHECK(contains(errors[0], ", but rank 0 on node has "));
}

TEST_CASE("a schedule and its warm-up: lines about a run that ends inside of one of them tell the rate of its last step") {
  const auto note = [](const std::vector<std::string>& keys, int64_t steps, int64_t end, int64_t step) {
    TrainState state;
    state.step = step;
    state.schedule_steps = end;
    return schedule_note(load_config<TrainConfig>("", keys).schedule, steps, state);
  };
  CHECK(note({}, 40, 40, 0) == "warmup: 100 steps, but the run has 40;\nthe learning rate ends at 0.000396, below lr: 0.001\n");
  CHECK(note({}, 60, 40, 40) == "warmup: 100 steps, but the run has 60;\nthe learning rate ends at 0.0005941, below lr: 0.001\n");
  CHECK(note({"schedule=constant"}, 100, 100, 0) ==
        "warmup: 100 steps, but the run has 100;\nthe learning rate ends at 0.0009901, below lr: 0.001\n");
  CHECK(note({}, 200, 40, 40) == "warmup: 100 steps, but the schedule ends at step 40;\nafter the warm-up the learning rate is 0.0001\n");
  CHECK(note({"schedule=wsd"}, 200, 100, 0) ==
        "warmup: 100 steps, but the schedule ends at step 100;\nafter the warm-up the learning rate is 0.0001\n");
  CHECK(note({"warmup=10"}, 60, 40, 40) ==
        "the schedule ends at step 40: after it the learning rate is 0.0001;\nschedule_steps=60 would end it later\n");
  CHECK(note({"warmup=10"}, 60, 40, 0).empty());  // as requested
  CHECK(note({}, 101, 101, 0).empty());
  CHECK(note({"schedule=constant"}, 200, 40, 40).empty());
}

TEST_CASE("freeze: whole paths, beginnings up to a dot, and asterisks") {
  using Paths = std::vector<std::string>;
  CHECK(frozen({}) == Paths{});
  CHECK(frozen({"tok"}) == Paths{"tok.weight"});
  CHECK(frozen({"blocks.1.fc.bias"}) == Paths{"blocks.1.fc.bias"});
  CHECK(frozen({"blocks.1.ln1", "pos.weight"}) == Paths{"pos.weight", "blocks.1.ln1.weight", "blocks.1.ln1.bias"});  // none of block 11
  CHECK(frozen({"blocks.*.fc.weight"}).size() == 12);
  CHECK(frozen({"blocks.*"}) == frozen({"blocks"}));
  CHECK(frozen({"*.weight"}) == Paths{"tok.weight", "pos.weight", "ln_f.weight"});
}

TEST_CASE("freeze: what fits nothing, and what leaves nothing") {
  CHECK(error_of([] { frozen({"tok", "blocks.12"}); }).starts_with("freeze: 'blocks.12' matches no parameter, the nearest is 'blocks.1"));
  CHECK(error_of([] { frozen({"block"}); }) == "freeze: 'block' matches no parameter, the nearest is 'blocks'");
  CHECK(error_of([] { frozen({""}); }).starts_with("freeze: '' matches no parameter"));
  CHECK(error_of([] { frozen({"*"}); }) == "freeze: no parameter is left to train");
}

TEST_CASE("conversations: questions as targets change neither loss nor gradients") {
  // question 1 2, answer 3 4, question 5 6
  const std::string first = learnt({1, 2, 3, 4, 5, 6}, {0, 0, 1, 1, 0, 0});
  CHECK(first.size() > 1000);
  CHECK(learnt({1, 2, 3, 4, 7, 8}, {0, 0, 1, 1, 0, 0}) == first);
  CHECK(learnt({1, 2, 3, 4}, {0, 0, 1, 1}) != learnt({1, 2, 3, 5}, {0, 0, 1, 1}));
  CHECK(learnt({1, 2, 3, 4, 5, 6}, {0, 0, 1, 1, 0, 1}) != first);
}

TEST_CASE("the embedded text never changes") {
  CHECK(embedded_corpus().size() == 459'230);
  CHECK(xxh64(embedded_corpus()) == 0x86240af4e9349dcbu);
}
