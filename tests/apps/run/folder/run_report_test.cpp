// The words of ricci-train about the time that is left, and about an evaluation.
#include "apps/run/folder/run_report.h"

#include <doctest/doctest.h>

using namespace ricci::apps;

// A step has 2 batches of 3 sequences of 5 tokens, 30 in all, and takes 30 s. An evaluation of 90 tokens then takes 30 s too.
TEST_CASE("run report: the time that is left, with the evaluations") {
  TrainConfig config;
  config.steps = 100, config.accumulation = 2, config.batch = 3, config.context = 5, config.eval_every = 40;
  // 100 steps, and evaluations behind the steps 40, 80 and 100.
  CHECK(expected_line(config, 0, 30, 90) == "about 51:30, of which 1:30 for 3 evaluations; 20:00 to the next one");
  CHECK(expected_line(config, 5, 30, 90) == "about 49:00, of which 1:30 for 3 evaluations; 17:30 to the next one");
  CHECK(expected_line(config, 40, 30, 90) == "about 31:00, of which 1:00 for 2 evaluations; 20:00 to the next one");
  // The next one is the last, which does not wait for 40 steps more.
  CHECK(expected_line(config, 85, 30, 90) == "about 8:00, of which 0:30 for 1 evaluation; 7:30 to the next one");
  config.eval_every = 0;
  CHECK(expected_line(config, 50, 30, 9000) == "about 1:15:00, of which 50:00 for 1 evaluation; 25:00 to the next one");
  CHECK(expected_line(config, 50, 1, 30) == "");
}

TEST_CASE("run report: an evaluation of a classifier tells its accuracy") {
  ricci::Confusion confusion(2);
  for (int64_t i = 0; i < 1500; ++i) confusion.add(0, i < 813 ? 0 : 1);
  const ricci::Evaluation evaluation{.nats_per_token = 0.687, .tokens = 1500, .targets = 1500, .confusion = confusion};
  CHECK(evaluation_line(2000, 0.69314, evaluation) == "step 2,000: train 0.6931, validation 0.6870, accuracy 0.5420 (1,500 documents)");
  // The longest that are likely fit on a terminal of 80 columns.
  CHECK(evaluation_line(100'000, 5.12345, {.nats_per_token = 5.1, .tokens = 99'999}).size() <= 80);
}

TEST_CASE("run report: the memory of a GPU that tensors had and that its pool holds") {
  CHECK(memory_line(int64_t{3} << 29, int64_t{2} << 30) == "at most 1.5 GiB of tensors, 2.0 GiB reserved");
  CHECK_FALSE(reserved_bytes(ricci::Device::cpu).has_value());
}
