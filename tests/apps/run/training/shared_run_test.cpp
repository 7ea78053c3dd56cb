// What ranks tell each other around a training and after each step.
#include "apps/run/training/shared_run.h"

#include <doctest/doctest.h>

#include "apps/run/config/config.h"
#include "apps/run/training/step_notes.h"
#include "tests/data/files.h"
#include "tests/thread_ranks.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;
using ricci::on_ranks;

namespace {

TrainConfig small_run(const std::vector<std::string>& more = {}) {
  std::vector<std::string> keys{"model.d=8", "model.layers=1", "model.heads=2", "model.ctx=8", "sample.tokens=0"};
  keys.insert(keys.end(), more.begin(), more.end());
  return load_config<TrainConfig>("", keys);
}

Model drawn(uint64_t seed) {
  TrainConfig config = small_run({"model.vocab=7"});
  Model model(config.model, seed);
  model.place(Dtype::f32, Device::cpu);
  return model;
}

}  // namespace

TEST_CASE("shared run: a config that is told is the same config") {
  for (const std::vector<std::string>& keys : {std::vector<std::string>{}, {"sample.prompt=\"a: b\\n#\"", "data=[a b.txt,c=d]", "lr=0.1"},
           {"order=shuffled", "weights=[]", "freeze=[tok,blocks.*.mixer]", "max_ranks=4", "accumulation=4", "schedule=wsd"},
           {"model.family=topdown", "model.bag_weights=[0.1]"}, {"optimizer=sgd", "momentum=0.5", "steps=7"}}) {
    const TrainConfig config = small_run(keys);
    const TrainConfig told = config_of(text_of(config));
    CHECK(text_of(told) == text_of(config));
  }
}

TEST_CASE("shared run: a rank with another text, and one with other values, are named") {
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

  const auto compare = [](int other) {
    return on_ranks(3, [other](Ranks& ranks) {
      Model model = drawn(1);
      int64_t number = 0;
      model.each_parameter([&](const std::string&, Parameter& p) {
        if (number++ == 2 && ranks.rank() == other) p.value.data<float>()[3] += 1e-6f;
      });
      compare_replicas(ranks, model, 12, 10);
    });
  };
  CHECK(compare(-1) == std::vector<std::string>(3));
  for (const std::string& error : compare(1)) {
    CHECK(contains(error, "step 12: "));
    CHECK(contains(error, " on rank 1 on node is not rank 0's; nothing was saved; the last checkpoint is of step 10"));
  }
}

TEST_CASE("shared run: the weights of rank 0 on all") {
  const auto errors = on_ranks(3, [](Ranks& ranks) {
    Model model = drawn(static_cast<uint64_t>(ranks.rank()) + 1);
    weights_from_first(ranks, model);
    compare_replicas(ranks, model, 0, 0);
  });
  CHECK(errors == std::vector<std::string>(3));
}

TEST_CASE("step notes: the request to end, memory, times, and a slow rank, which is named once") {
  ricci::Meeting meeting(4);
  ricci::ThreadRanks ranks(meeting, 0, 4);
  StepNotes notes(ranks);
  CHECK_FALSE(notes.exchange_ms().has_value());
  const auto told = [](double waited, double slow) {
    return std::vector<double>{0, 100, waited, 0, 300, waited, 0, 200, slow, 0, 100, waited};  // rank 2 is another
  };
  std::string lines;
  for (int step = 0; step < 100; ++step) lines += notes.take(told(0.01, 0.005), 0.1);
  CHECK(lines == "");
  CHECK(notes.peak_bytes() == 300);
  CHECK_FALSE(notes.asked_to_end());
  CHECK(notes.exchange_ms() == doctest::Approx(10));
  for (int step = 0; step < 300; ++step) lines += notes.take(told(0.05, 0.01), 0.1);
  CHECK(lines == "warning: rank 2 on node is the slowest: the others wait 40 of 100 ms for it");
  std::vector<double> asked = told(0, 0);
  asked[9] = 1;
  notes.take(asked, 0.1);
  CHECK(notes.asked_to_end());
}
