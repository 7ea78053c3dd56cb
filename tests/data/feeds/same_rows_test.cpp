// The expected rows of 20 steps of every feed, and the expected positions in the data: a run continues with the same bits. Crops and
// columns have no position.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/files/checksum.h"
#include "data/feeds/evaluation.h"
#include "data/feeds/feed.h"
#include "data/feeds/sequence_stream.h"
#include "data/tokenizers/training/training.h"
#include "tests/data/feeds/corpora.h"
#include "tests/data/ids.h"

using namespace ricci;
using namespace test_data;

namespace {

uint64_t add(uint64_t hash, const Batch& batch) {
  const bool is_labelled = batch.targets.shape().rank() == 1;
  for (const Tensor& part : {batch.ids_bc, is_labelled ? Tensor() : batch.targets, is_labelled ? batch.targets : Tensor(), batch.lengths_b})
    hash = xxh64(bytes_of(numbers_of(part)), hash);
  const std::vector<int64_t> numbers{batch.ids_bc.shape()[0], batch.ids_bc.shape()[1], batch.scored};
  return xxh64(bytes_of(numbers), hash);
}

// 20 steps of two micro-batches, starting with micro-batch `first` of each.
uint64_t hash_of(Feed& feed, int first) {
  uint64_t hash = 0;
  for (int step = 0; step < 20; ++step)
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch)
      if (micro_batch < first) feed.skip();
      else hash = add(hash, feed.next());
  return hash;
}

uint64_t hash_of(const EvaluationBatches& batches) {
  uint64_t hash = 0;
  for (int64_t i = 0; i < batches.batches(); ++i) hash = add(hash, batches.at(i));
  return hash;
}

// second: for a rank that reads only the second micro-batch of each step.
void check(const std::vector<Tokens>& corpora, StreamOptions options, uint64_t both, uint64_t second, const std::string& place) {
  options.batch = 3;
  options.seed = 4;
  SequenceStream all(corpora, options), some(corpora, options);
  CHECK(hash_of(all, 0) == both);
  CHECK(hash_of(some, 1) == second);
  CHECK(all.place() == place);
  CHECK(some.place() == place);
}

// Conversations of 1 to 4 questions and answers.
std::string conversations(int count) {
  const char* const words[] = {"the", "gradient", "of", "a", "tensor", "42"};
  Sequence sequence(8);
  std::string lines;
  for (int i = 0; i < count; ++i) {
    std::string messages;
    for (uint64_t turns = sequence.below(4) + 1; turns-- > 0;)
      for (const char* const role : {"user", "assistant"}) {
        std::string text;
        for (uint64_t n = sequence.below(9) + 1; n-- > 0;) text += (text.empty() ? "" : " ") + std::string(words[sequence.below(6)]);
        messages += (messages.empty() ? "" : ", ") + (R"({"role": ")" + std::string(role)) + R"(", "content": ")" + text + "\"}";
      }
    lines += "{\"messages\": [" + messages + "]}\n";
  }
  return lines;
}

}  // namespace

TEST_CASE("the rows of 20 steps: crops and columns") {
  const ScratchFolder folder;
  const Tokens text = corpus(folder);
  RandomCrops crops(text, 3, 12, 7, 2);
  ColumnBatches columns(text, 3, 12, 2);
  CHECK(hash_of(crops, 0) == 0xf62092627a56c5e4);
  CHECK(hash_of(columns, 0) == 0xc80fbb886bed1112);
}

TEST_CASE("the rows of 20 steps: shuffled text of shards and of blocks") {
  const ScratchFolder folder;
  const std::vector<Tokens> texts{corpus(folder, "a"), corpus(folder, "b", "xyz", 100)};
  check(texts, {.context = 12, .shuffle_buffer = 50, .weights = {2, 1}}, 0x387039ff76d1637d, 0x2011806d78341393,
      "120 91 0 0 30 6 29 0 0 0 0");
  std::vector<int64_t> ids;
  for (int i = 0; i < 20'000; ++i) ids.push_back(i * i / 3 % 251);
  const Tokens blocks = Tokens::open(folder.write("blocks.bin", llmc_shard(20240520, 1, ids, 2)), ByteTokenizer());
  check({blocks}, {.context = 700, .shuffle_buffer = 9}, 0xe88e61c064b90f33, 0xc1b9f5d3554b8629, "120 120 4 0 0 1900");
  const std::string path = prepare(folder, "text", plain(TextSource(folder.write("text.txt", documents(1000, 40, "abc")))), bytes());
  const Tokens text = Tokens::open_cached(path, ByteTokenizer(), "text").in_blocks();
  check({text}, {.context = 700, .shuffle_buffer = 9}, 0xeebde827883807f8, 0x992d6026d2d284e5, "120 120 3 0 5 2500");
}

TEST_CASE("the rows of 20 steps: documents under labels") {
  const ScratchFolder folder;
  const Tokens c = labelled(folder, "c", 40), d = labelled(folder, "d", 9);
  check({c, d}, {.context = 20, .shuffle_buffer = 7, .rows = RowKind::whole}, 0xbe6d800d938cf3cd, 0xd7b024824303c8bd,
      "120 106 2 3 13 0 14 1 0 5 0");
  check({c}, {.context = 20, .rows = RowKind::whole, .full_width = true}, 0x9266740981158ecb, 0xe9b72e0e78f016ce, "120 120 3 0 0 0");
  CHECK(hash_of(EvaluationBatches::documents(c, 6, 20)) == 0xfd1d956093e0b53e);
}

TEST_CASE("the rows of 20 steps: conversations") {
  const ScratchFolder folder;
  const auto tokenizer = with_additions(
      *open_tokenizer(std::string(RICCI_TESTS_FOLDER) + "/data/tokenizers/small/gpt2.json"), {.pieces = {"<|im_start|>", "<|im_end|>"}});
  const Tokens all = records(folder, "talks", conversations(150), {.format = format_of(kMessages), .chat = {"chatml"}}, tokenizer);
  const auto [kept, counts] = keep_masked(all, 90);
  CHECK(counts.all == 150);
  CHECK(counts.cut == 67);
  check({kept}, {.context = 90, .shuffle_buffer = 30, .rows = RowKind::whole}, 0x314003e32efa1207, 0xed7be6eea6e7de0f, "120 120 0 0 120 0");
  check({kept}, {.context = 90, .shuffle_buffer = 30, .rows = RowKind::whole, .full_width = true}, 0x41b26518dabe72c1, 0x87e8137f9e9d4eaf,
      "120 120 0 0 120 0");
  CHECK(hash_of(EvaluationBatches::documents(kept, 6, 90)) == 0x0f68d9691cd074ff);
}

TEST_CASE("the rows of 20 steps: a token that starts every document") {
  const ScratchFolder folder;
  std::string lines;
  Sequence sequence(1);
  for (int i = 0; i < 60; ++i) {
    lines += "{\"text\":\"a";
    for (uint64_t n = sequence.below(9); n-- > 0;) lines += "ab"[sequence.below(2)];
    lines += "\"}\n";
  }
  const Tokens tokens = records(folder, "marked", lines, {.format = format_of(kJsonl)}, starting());
  check({tokens}, {.context = 12, .shuffle_buffer = 9}, 0x6f3f6c35e3f9a8cf, 0x61cefd46f2bfb4ea, "120 120 3 0 40 8");
  RandomCrops crops(tokens, 3, 12, 7, 2);
  ColumnBatches columns(tokens, 3, 12, 2);
  CHECK(hash_of(crops, 0) == 0xcaa786b4ae8edd0f);
  CHECK(hash_of(columns, 0) == 0xcf589df3e9d35410);
}
