// The token that starts every document (Marks::first): the shards have it before each document, and no batch asks for it.
#include <doctest/doctest.h>

#include <algorithm>

#include "data/feeds/feed.h"
#include "data/feeds/sequence_stream.h"
#include "data/shards/store.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

// a 0, b 1, | 2, which starts every text.
std::shared_ptr<const Tokenizer> starting() {
  return tokenizer_from_json(
      R"({"added_tokens":[{"id":2,"content":"|"}],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"|"}},{"Sequence":{"id":"A"}}]},)"
      R"("model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}})");
}

void check_counts(const Batch& batch) {
  const auto count = [&](int64_t id) { return std::count(batch.targets_bc.begin(), batch.targets_bc.end(), id); };
  CHECK(count(2) == 0);
  CHECK(count(kNoTarget) > 0);
  CHECK(batch.scored == std::ssize(batch.targets_bc) - count(kNoTarget));
  CHECK(std::count(batch.ids_bc.begin(), batch.ids_bc.end(), 2) > 0);
}

}  // namespace

TEST_CASE("first token: it starts every document, and is no target of crops, columns, windows and streams") {
  const ScratchFolder folder;
  const std::string path = folder.write("a.jsonl", R"({"text":"ab"})"
                                                   "\n"
                                                   R"({"text":"b"})"
                                                   "\n"
                                                   R"({"text":"aab"})"
                                                   "\n");
  const Tokens tokens =
      open_source({.files = TextSource(path), .documents = {.format = DocumentFormat::jsonl}}, starting(), folder / "cache").train;
  std::vector<int64_t> ids(static_cast<size_t>(tokens.size()));
  tokens.read(0, ids);
  CHECK(ids == std::vector<int64_t>{2, 0, 1, 2, 1, 2, 0, 0, 1});
  CHECK(tokens.first_id() == 2);

  check_counts(Windows(tokens, 2, 4, 4).at(0));
  check_counts(ColumnBatches(tokens, 2, 2, 4).at(0));
  check_counts(RandomCrops(tokens, 3, 6, 1).at(0));
  SequenceStream stream({tokens}, {.context = 6, .seed = 1, .shuffle_buffer = 1});
  check_counts(stream.next_step(1, 2)[0]);
  // The windows ask for all others but the first token of the text.
  const Windows windows(tokens, 1, 4, 4);
  CHECK(windows.at(0).targets_bc == std::vector<int64_t>{0, 1, kNoTarget, 1});
  CHECK(windows.at(1).targets_bc == std::vector<int64_t>{kNoTarget, 0, 0, 1});
}

TEST_CASE("first token: one text is one document, of however many pieces") {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += "ab"[i % 2];
  const Tokens tokens = open_source({.files = TextSource(folder.write("a.txt", text))}, starting(), folder / "cache").train;
  std::vector<int64_t> ids(static_cast<size_t>(tokens.size()));
  tokens.read(0, ids);
  CHECK(tokens.size() == 300'001);
  CHECK(ids[0] == 2);
  CHECK(std::count(ids.begin(), ids.end(), 2) == 1);
}
