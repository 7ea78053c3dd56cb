// The loss of conversations counts answers alone: a question as a target changes neither the loss nor a gradient, by a bit.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "apps/run/corpus/micro_batches.h"
#include "autograd/tape.h"
#include "data/feeds/conversations.h"
#include "models/model.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr int64_t kVocab = 10;  // ids from here on are those that count

// The bytes of the loss and of all gradients, for a conversation of these ids.
std::string learnt(const std::vector<int64_t>& ids) {
  ModelConfig config;
  config.layers = 2;
  config.d = 16;
  config.ctx = 16;
  config.vocab = kVocab;
  resolve(config);
  Model model(config);
  model.init(3);
  const std::vector<LabelledIds> one{{ids}};
  const MicroBatch batch = micro_batch_of(conversation_batch(one, kVocab), Device::cpu);
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

TEST_CASE("conversations: questions as targets change neither loss nor gradients") {
  // question 1 2, answer 3 4, question 5 6
  const std::string first = learnt({1, 2, 13, 14, 5, 6});
  CHECK(first.size() > 1000);
  CHECK(learnt({1, 2, 13, 14, 7, 8}) == first);
  CHECK(learnt({1, 2, 13, 14}) != learnt({1, 2, 13, 15}));
  CHECK(learnt({1, 2, 13, 14, 5, 16}) != first);
}
