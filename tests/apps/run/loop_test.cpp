// The texts that ranks compare; the config that rank 0 sends; frozen parameters; the loss of conversations, which counts only answers; and
// the embedded text, which must be the same in every build, because runs that learn it continue after an update.
#include "apps/run/loop.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "apps/run/batches.h"
#include "apps/run/config.h"
#include "apps/run/corpus.h"
#include "autograd/tape.h"
#include "core/files/checksum.h"
#include "data/feeds/feed.h"
#include "models/model.h"
#include "models/training/freeze.h"
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

// The paths that are frozen.
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

// The bytes of the loss and of all gradients, for a document of these ids, of which some count.
std::string learnt(const std::vector<int64_t>& ids, const std::vector<uint8_t>& counts) {
  ModelConfig config;
  config.layers = 2;
  config.d = 16;
  config.ctx = 16;
  config.vocab = kVocab;
  Model model(config);
  model.init(3);
  const std::vector<Row> one{{ids, counts}};
  const MicroBatch batch = micro_batch_of(predicting_batch(one), Device::cpu);
  Tape tape;
  const Tensor loss = model.loss(batch.inputs);
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
           {"model.family=topdown", "model.bag_weights=[0.1]"}, {"optimizer=sgd", "momentum=0.5", "steps=7"}}) {
    const TrainConfig config = small_run(keys);
    TrainConfig any;
    const TrainConfig sent = config_of<TrainConfig>(recorded_settings(to_yaml(config), "rank 0", fields_of(any)));
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
  CHECK(contains(errors[0], "rank 2 on node: text "));
  CHECK(contains(errors[0], ", rank 0 on node: "));
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
