// The shuffled stream: every document once per epoch, mixtures in proportion, ranks that share a step, and going on from any place.
#include "data/feeds/sequence_stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "data/shards/tokens.h"
#include "tests/data/ids.h"
#include "tests/data/shards/shard_files.h"

using namespace ricci;
using namespace test_data;

namespace {

// Documents of 1 to 40 tokens, each of letters and a line end.
std::string documents(int count, uint64_t seed, const std::string& letters) {
  Sequence sequence(seed);
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (uint64_t length = sequence.below(40); length-- > 0;) text += letters[sequence.below(letters.size())];
    text += '\n';
  }
  return text;
}

std::multiset<std::string> lines_of(const std::string& text) {
  std::multiset<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

std::vector<std::vector<int64_t>> sequences_of(const std::vector<Batch>& step) {
  std::vector<std::vector<int64_t>> all;
  for (const Batch& batch : step)
    for (int64_t b = 0; b < batch.batch; ++b)
      all.emplace_back(batch.ids_bc.begin() + b * batch.context, batch.ids_bc.begin() + (b + 1) * batch.context);
  return all;
}

Tokens small_corpus(
    const ScratchFolder& folder, const std::string& name = "small", const std::string& letters = "abcdef", int count = 400) {
  return ShardedTokens::open(prepared(folder, name, documents(count, 3, letters), 1500), ByteTokenizer());
}

}  // namespace

TEST_CASE("an epoch has every document once, in another order than the next") {
  const ScratchFolder folder;
  const std::string text = documents(400, 3, "abcdef");
  const Tokens tokens = small_corpus(folder);
  REQUIRE(tokens.shards() > 4);
  DocumentOrder order(tokens, 11), same(tokens, 11), other(tokens, 12);
  std::vector<int64_t> ids(static_cast<size_t>(tokens.size())), ids_of_other = ids;
  std::set<std::vector<int64_t>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    CHECK(order.place() == StreamPlace{epoch, 0, 0, 0});
    order.read(ids);
    CHECK(lines_of(ByteTokenizer().decode(ids)) == lines_of(text));
    orders.insert(ids);
  }
  CHECK(orders.size() == 3);
  same.read(ids), other.read(ids_of_other);
  CHECK(orders.count(ids) == 1);
  CHECK(ids != ids_of_other);
}

TEST_CASE("skipping leads to where reading leads, and any place can be gone to") {
  const ScratchFolder folder;
  const Tokens tokens = small_corpus(folder);
  DocumentOrder reading(tokens, 1), skipping(tokens, 1);
  Sequence sequence(9);
  std::vector<int64_t> ids, again;
  for (int i = 0; i < 300; ++i) {
    const auto count = static_cast<int64_t>(1 + sequence.below(200));
    ids.resize(static_cast<size_t>(count)), again.resize(ids.size());
    DocumentOrder third(tokens, 1);
    third.go_to(reading.place());
    reading.read(ids), third.read(again), skipping.skip(count);
    CHECK(ids == again);
    CHECK(reading.place() == skipping.place());
    CHECK(reading.place() == third.place());
  }
  CHECK(reading.place().epoch > 1);
  const std::string shards = std::to_string(tokens.shards());
  CHECK(error_of([&] {
    reading.go_to({0, tokens.shards(), 0, 0});
  }) == "small: epoch 0, shard " + shards + ", document 0, token 0 is no place in its " + shards + " shards");
  CHECK(contains(error_of([&] { reading.go_to({0, 0, 1 << 20, 0}); }), "is no place"));
  CHECK(contains(error_of([&] { reading.go_to({0, 0, 0, 1 << 20}); }), "is no place"));
  CHECK(contains(error_of([&] { reading.go_to({-1, 0, 0, 0}); }), "is no place"));
}

TEST_CASE("sequences follow each other in the stream; the buffer only mixes them") {
  const ScratchFolder folder;
  const Tokens tokens = small_corpus(folder);
  const int64_t context = 7, buffer = 64;
  for (const int64_t size : {int64_t{1}, buffer}) {
    SequenceStream stream({tokens}, {.context = context, .seed = 5, .shuffle_buffer = size}),
        plain({tokens}, {.context = context, .seed = 5, .shuffle_buffer = 1});
    std::vector<std::vector<int64_t>> mixed, in_order;
    int64_t follower = -1;
    for (int64_t i = 0; i < 3 * buffer; ++i) {
      const Batch a = stream.next_step(1, 1)[0], b = plain.next_step(1, 1)[0];
      CHECK(std::equal(a.ids_bc.begin() + 1, a.ids_bc.end(), a.targets_bc.begin()));
      CHECK(a.scored == context);
      if (i > 0) CHECK(b.ids_bc[0] == follower);
      follower = b.targets_bc.back();
      mixed.push_back(a.ids_bc), in_order.push_back(b.ids_bc);
    }
    CHECK((mixed == in_order) == (size == 1));
    for (int64_t block = 0; block < 3; ++block)
      CHECK(std::is_permutation(mixed.begin() + block * buffer, mixed.begin() + (block + 1) * buffer, in_order.begin() + block * buffer));
  }
}

TEST_CASE("a mixture has its corpora in proportion to the weights, or to their tokens") {
  const ScratchFolder folder;
  const std::vector<Tokens> corpora = {
      small_corpus(folder, "a", "a"), small_corpus(folder, "b", "b", 1200), small_corpus(folder, "c", "c")};
  for (const std::vector<double>& weights : {std::vector<double>{1, 2, 5}, std::vector<double>{}}) {
    SequenceStream stream(corpora, {.context = 50, .seed = 2, .shuffle_buffer = 8, .weights = weights});
    std::vector<double> expected = weights.empty() ? std::vector<double>{} : weights, drawn(3, 0);
    if (weights.empty())
      for (const Tokens& tokens : corpora) expected.push_back(static_cast<double>(tokens.size()));
    const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
    constexpr int kDraws = 8000;
    for (const auto& ids : sequences_of(stream.next_step(kDraws / 4, 4))) {
      const int64_t letter = *std::max_element(ids.begin(), ids.end());
      CHECK(std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return id == letter || id == '\n'; }));
      ++drawn[static_cast<size_t>(letter - 'a')];
    }
    for (size_t i = 0; i < 3; ++i) CHECK(drawn[i] / kDraws == doctest::Approx(expected[i] / sum).epsilon(0.08));
  }
}

TEST_CASE("whoever share a step by ranges of its batches read all of it, none twice, and stand at the same place") {
  const ScratchFolder folder;
  const std::vector<Tokens> corpora = {small_corpus(folder, "a", "abc"), small_corpus(folder, "b", "xyz")};
  const StreamOptions options{.context = 9, .seed = 4, .shuffle_buffer = 32, .weights = {1, 3}};
  SequenceStream alone(corpora, options);
  const std::vector<Range> ranges = {{0, 2}, {2, 5}, {5, 5}, {5, 6}};
  std::vector<SequenceStream> parts(ranges.size(), alone);
  for (int step = 0; step < 40; ++step) {
    std::vector<std::vector<int64_t>> together;
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::vector<Batch> batches = parts[i].next_step(ranges[i], 6, 4);
      CHECK(static_cast<int64_t>(batches.size()) == ranges[i].hi - ranges[i].lo);
      const auto part = sequences_of(batches);
      together.insert(together.end(), part.begin(), part.end());
    }
    CHECK(together == sequences_of(alone.next_step(6, 4)));
  }
  for (const SequenceStream& part : parts) CHECK(part.place() == alone.place());
  for (const Range wrong : {Range{-1, 2}, Range{3, 2}, Range{5, 7}})
    CHECK(contains(error_of([&] { alone.next_step(wrong, 6, 4); }), "sequence stream: batches "));
}

TEST_CASE("a stream goes on from any place as if it had never stopped") {
  const ScratchFolder folder;
  const std::vector<Tokens> corpora = {small_corpus(folder, "a", "abc"), small_corpus(folder, "b", "xyz", 100)};
  for (const int64_t buffer : {1, 5, 64, 100'000}) {  // the last is larger than an epoch
    const StreamOptions options{.context = 12, .seed = 4, .shuffle_buffer = buffer, .weights = {2, 1}};
    SequenceStream whole(corpora, options);
    std::string place;
    for (int step = 0; step < 120; ++step) {
      SequenceStream resumed(corpora, options);
      if (step > 0) resumed.go_to(place);
      const auto expected = sequences_of(whole.next_step(2, 5));
      CHECK(sequences_of(resumed.next_step(1, 10)) == expected);
      place = whole.place();
      CHECK(resumed.place() == place);
    }
  }
}

TEST_CASE("what cannot be streamed") {
  const ScratchFolder folder;
  const Tokens tokens = small_corpus(folder), few = Ids(std::vector<int64_t>{1, 2, 3}, 256), other = Ids(std::vector<int64_t>(100, 1), 5);
  const auto error = [&](std::vector<Tokens> corpora, const StreamOptions& options) {
    return error_of([&] { SequenceStream(std::move(corpora), options); });
  };
  CHECK(error({}, {.context = 4}) == "data: no tokens were given");
  CHECK(error({few}, {.context = 3}) == "sequence stream: ids has 3 tokens, but a context of 3 needs 4");
  CHECK(error({tokens, other}, {.context = 3}) == "data: small and ids were made by different tokenizers, of 256 and 5 tokens");
  CHECK(error({tokens}, {.context = 3, .weights = {1, 2}}) == "weights: 2 of them for 1 corpora of data");
  CHECK(error({tokens}, {.context = 3, .weights = {0}}) == "weights: 0, expected more than 0");
  CHECK(error({tokens}, {.context = 3, .shuffle_buffer = 0}) ==
        "sequence stream: context 3 and shuffle_buffer 0, expected 1 or more of each");
  SequenceStream stream({tokens}, {.context = 3});
  for (const char* place : {"", "x", "1 2 3", "1 0 0 0 0 0 7", "0 -1 0 0 0 0", "99999999999999999999"})
    CHECK(error_of([&] { stream.go_to(place); }) == std::string("sequence stream: '") + place + "' is no place in the data");
  CHECK(contains(error_of([&] { stream.go_to("0 0 0 9999 0 0"); }), "is no place in its"));
}

TEST_CASE("joined tokens are those of one after the other, with all documents") {
  const ScratchFolder folder;
  const Tokens a = small_corpus(folder, "a"), b = Ids(std::vector<int64_t>(5000, 7), 256), c = small_corpus(folder, "c", "xyz");
  const Tokens all = join({a, b, c});
  CHECK(all.size() == a.size() + 5000 + c.size());
  CHECK(all.name() == "a and 2 more");
  CHECK(text_of(all, 0, all.size()) == text_of(a, 0, a.size()) + std::string(5000, 7) + text_of(c, 0, c.size()));
  CHECK(all.shards() == a.shards() + 1 + c.shards());
  int64_t end = 0;
  for (int64_t shard = 0; shard < all.shards(); ++shard) {
    for (int64_t i = 0; i < all.documents(shard); ++i) {
      CHECK(all.document(shard, i).first == end);
      end = all.document(shard, i).end;
    }
  }
  CHECK(end == all.size());
  CHECK(all.hash() != join({c, b, a}).hash());
  CHECK(join({a}).hash() == a.hash());
}
