// The shuffled stream of sequences, of packed rows and of whole documents: every document once per epoch, mixtures in proportion, rows that
// are those of best fit spelled out, ranks that share a step, and going on from any place.
#include "data/feeds/sequence_stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "data/feeds/feed.h"
#include "data/feeds/packing.h"
#include "data/shards/tokens.h"
#include "tests/data/ids.h"
#include "tests/data/shards/shard_files.h"

using namespace ricci;
using namespace test_data;

namespace {

// Documents of 1 to `longest` tokens, each of letters and a line end.
std::string documents(int count, uint64_t longest, const std::string& letters) {
  Sequence sequence(3);
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (uint64_t length = sequence.below(longest); length-- > 0;) text += letters[sequence.below(letters.size())];
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

// Each part of each row of a step.
std::vector<std::vector<int64_t>> rows_of(const std::vector<Batch>& step) {
  std::vector<std::vector<int64_t>> all;
  for (const Batch& batch : step)
    for (int64_t b = 0; b < batch.batch; ++b) {
      for (const std::vector<int64_t>* part : {&batch.ids_bc, &batch.targets_bc})
        if (!part->empty()) all.emplace_back(part->begin() + b * batch.context, part->begin() + (b + 1) * batch.context);
      for (const std::vector<int64_t>* part : {&batch.labels_b, &batch.lengths_b})
        if (!part->empty()) all.push_back({(*part)[static_cast<size_t>(b)]});
    }
  return all;
}

Tokens corpus(const ScratchFolder& folder, const std::string& name = "small", const std::string& letters = "abcdef", int count = 400,
    uint64_t longest = 40) {
  return ShardedTokens::open(prepared(folder, name, documents(count, longest, letters), 1500), ByteTokenizer());
}

constexpr int64_t kContext = 20;

// Document i is i + 1 letters under the label i % 5, in a folder of shards.
Tokens labelled(const ScratchFolder& folder, const std::string& name, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += std::to_string(i % 5) + "\t" + std::string(static_cast<size_t>(i + 1), static_cast<char>('a' + i % 26)) + "\n";
  make_folders(folder / name);
  const auto files = TextSource(folder.write(name + ".tsv", text));
  prepare_shards(files, ByteTokenizer(), Folder(folder / name),
      {.documents = {.format = format_of(kTsv), .label_field = "1", .classes = 5}, .shard_tokens = 100});
  return ShardedTokens::open(folder / name, ByteTokenizer());
}

// Best fit by looking at every document of the buffer.
std::vector<PackedRow> packed_plainly(DocumentOrder order, const PackingOptions& of) {
  std::vector<PackedPiece> waiting;  // in the order of their arrival
  int64_t taken = 0;
  const auto fill = [&] {
    for (; taken < of.documents && std::ssize(waiting) < of.buffer; ++taken) {
      waiting.push_back({order.place(), order.rest().size()});
      order.skip_document();
    }
  };
  std::vector<PackedRow> rows;
  for (fill(); !waiting.empty();) {
    PackedRow row;
    for (int64_t left = of.row; left > 0 && !waiting.empty(); fill()) {
      size_t best = waiting.size(), shortest = 0;
      for (size_t i = 0; i < waiting.size(); ++i) {
        if (waiting[i].tokens <= left && (best == waiting.size() || waiting[i].tokens > waiting[best].tokens)) best = i;
        if (waiting[i].tokens < waiting[shortest].tokens) shortest = i;
      }
      if (best < waiting.size()) {
        row.push_back(waiting[best]);
        left -= waiting[best].tokens;
        waiting.erase(waiting.begin() + static_cast<int64_t>(best));
      } else if (of.cuts && left > 1) {
        row.push_back({waiting[shortest].place, left});
        waiting[shortest].place.token += left - 1;
        waiting[shortest].tokens -= left - 1;
        left = 0;
      } else {
        break;
      }
    }
    rows.push_back(row);
  }
  return rows;
}

int64_t tokens_of(const PackedRow& row) {
  int64_t tokens = 0;
  for (const PackedPiece& piece : row) tokens += piece.tokens;
  return tokens;
}

// A row of a batch: label, length, and the ids of the document alone.
using Row = std::tuple<int64_t, int64_t, std::vector<int64_t>>;
Row row_of(const Batch& batch, int64_t b) {
  const int64_t length = batch.lengths_b[static_cast<size_t>(b)];
  const auto start = batch.ids_bc.begin() + b * batch.context;
  CHECK(std::all_of(start + length, start + batch.context, [](int64_t id) { return id == 0; }));
  return {batch.labels_b[static_cast<size_t>(b)], length, {start, start + length}};
}

std::vector<Row> documents_of(const std::vector<Batch>& step) {
  std::vector<Row> all;
  for (const Batch& batch : step)
    for (int64_t b = 0; b < batch.batch; ++b) all.push_back(row_of(batch, b));
  return all;
}

}  // namespace

TEST_CASE("an epoch has every document once, in another order than the next") {
  const ScratchFolder folder;
  const std::string text = documents(400, 40, "abcdef");
  const Tokens tokens = corpus(folder);
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
  const Tokens tokens = corpus(folder);
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
  const Tokens tokens = corpus(folder);
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
  const std::vector<Tokens> corpora = {corpus(folder, "a", "a"), corpus(folder, "b", "b", 1200), corpus(folder, "c", "c")};
  for (const std::vector<double>& weights : {std::vector<double>{1, 2, 5}, std::vector<double>{}}) {
    SequenceStream stream(corpora, {.context = 50, .seed = 2, .shuffle_buffer = 8, .weights = weights});
    std::vector<double> expected = weights.empty() ? std::vector<double>{} : weights, drawn(3, 0);
    if (weights.empty())
      for (const Tokens& tokens : corpora) expected.push_back(static_cast<double>(tokens.size()));
    const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
    constexpr int kDraws = 8000;
    const Batch batch = stream.next_step(1, kDraws)[0];
    for (auto first = batch.ids_bc.begin(); first != batch.ids_bc.end(); first += 50) {
      const std::span ids(first, 50);
      const int64_t letter = *std::max_element(ids.begin(), ids.end());
      CHECK(std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return id == letter || id == '\n'; }));
      ++drawn[static_cast<size_t>(letter - 'a')];
    }
    for (size_t i = 0; i < 3; ++i) CHECK(drawn[i] / kDraws == doctest::Approx(expected[i] / sum).epsilon(0.08));
  }
}

TEST_CASE("a stream goes on from any place as if it had never stopped, and whoever share its steps read all of them, none twice") {
  const ScratchFolder folder;
  const std::vector<Tokens> texts = {corpus(folder, "a", "abc"), corpus(folder, "b", "xyz", 100)},
                            labels = {labelled(folder, "c", 40), labelled(folder, "d", 9)};
  const StreamOptions plain{.context = 12, .seed = 4, .weights = {2, 1}},
      packed{.context = 30, .seed = 4, .weights = {2, 1}, .packs = true},
      whole{.context = kContext, .seed = 4, .weights = {1, 2}, .whole_documents = true, .full_width = true};
  const std::vector<Range> ranges = {{0, 2}, {2, 5}, {5, 5}, {5, 6}};
  for (StreamOptions options : {plain, packed, whole})
    for (const int64_t buffer : {1, 5, 64, 100'000}) {  // the last is larger than an epoch
      options.shuffle_buffer = buffer;
      const std::vector<Tokens>& corpora = options.whole_documents ? labels : texts;
      SequenceStream alone(corpora, options);
      std::vector<SequenceStream> parts(ranges.size(), alone);
      std::string place;
      for (int step = 0; step < 30; ++step) {
        SequenceStream resumed(corpora, options);
        if (step > 0) resumed.go_to(place);
        const auto expected = rows_of(alone.next_step(6, 3));
        place = alone.place();
        CHECK(place.size() < 60);
        CHECK(rows_of(resumed.next_step(1, 18)) == expected);
        CHECK(resumed.place() == place);
        std::vector<std::vector<int64_t>> together;
        for (size_t i = 0; i < parts.size(); ++i) {
          const std::vector<Batch> batches = parts[i].next_step(ranges[i], 6, 3);
          CHECK(std::ssize(batches) == ranges[i].hi - ranges[i].lo);
          for (const Batch& batch : batches) CHECK(batch.context == options.context);
          const auto part = rows_of(batches);
          together.insert(together.end(), part.begin(), part.end());
          CHECK(parts[i].place() == place);
        }
        CHECK(together == expected);
      }
    }
  SequenceStream alone({texts[0]}, {.context = 9});
  for (const Range wrong : {Range{-1, 2}, Range{3, 2}, Range{5, 7}})
    CHECK(contains(error_of([&] { alone.next_step(wrong, 6, 4); }), "sequence stream: batches "));
}

TEST_CASE("what cannot be streamed") {
  const ScratchFolder folder;
  const Tokens tokens = corpus(folder), few = Ids(std::vector<int64_t>{1, 2, 3}, 256), other = Ids(std::vector<int64_t>(100, 1), 5);
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
  SequenceStream packed({tokens}, {.context = 30, .packs = true});
  packed.go_to("0 99999 0 0 0 0");
  CHECK(contains(error_of([&] { packed.next_step(1, 1); }), "small: row 99999 of "));
}

TEST_CASE("joined tokens are those of one after the other, with all documents") {
  const ScratchFolder folder;
  const Tokens a = corpus(folder, "a"), b = Ids(std::vector<int64_t>(5000, 7), 256), c = corpus(folder, "c", "xyz");
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

TEST_CASE("rows take the longest document that fits, the earliest of equals, and cut the shortest where they may") {
  const ScratchFolder folder;
  const Tokens tokens = corpus(folder, "small", "abcdef", 500);
  for (const int64_t buffer : {1, 2, 9, 1000})
    for (const bool cuts : {false, true})
      for (const int64_t row : {33, 41, 64, 200}) {
        if (!cuts && row < 40) continue;  // a document is longer than a row
        DocumentOrder order(tokens, 3);
        const PackingOptions options{.row = row, .buffer = buffer, .documents = 400, .cuts = cuts};
        const std::vector<PackedRow> expected = packed_plainly(order, options), rows = pack_documents(order, options);
        CHECK(rows == expected);
        DocumentOrder after(tokens, 3);
        for (int i = 0; i < 400; ++i) after.skip_document();
        CHECK(order.place() == after.place());
        int64_t full = 0;
        for (const PackedRow& one : rows) full += tokens_of(one) >= row - 1;
        if (cuts) CHECK(full >= std::ssize(rows) - 1);
      }
}

TEST_CASE("a batch of packed rows: the last token of a document and padding predict nothing") {
  const std::vector<std::vector<std::vector<int64_t>>> rows{{{1, 2, 3}, {4, 5}}, {{6, 7, 8, 9, 1, 2, 3}}, {{5, 14, 16}, {3, 13}}};
  const Batch text = packed_rows(std::span(rows).first(2), 6, 0);
  CHECK(text.ids_bc == std::vector<int64_t>{1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 1, 2});
  CHECK(text.targets_bc == std::vector<int64_t>{2, 3, -1, 5, -1, -1, 7, 8, 9, 1, 2, 3});
  CHECK(text.scored == 9);
  // Of conversations 10 and more is a token that counts.
  const Batch talks = packed_rows(std::span(rows).subspan(2), 6, 10);
  CHECK(talks.ids_bc == std::vector<int64_t>{5, 4, 6, 3, 3, 0});
  CHECK(talks.targets_bc == std::vector<int64_t>{4, 6, -1, 3, -1, -1});
  CHECK(talks.scored == 3);
}

TEST_CASE("an epoch of packed rows has every document once, in another order than the next") {
  const ScratchFolder folder;
  const Tokens tokens = corpus(folder, "small", "abcdef", 200, 30);
  SequenceStream stream({tokens}, {.context = 63, .seed = 9, .packs = true});
  const auto targets = [&] {
    int64_t scored = 0;
    std::vector<std::vector<int64_t>> rows;
    for (std::string block; block.empty() || stream.place().find(' ' + block) != std::string::npos;) {
      const Batch batch = stream.next_step(1, 1)[0];
      scored += batch.scored;
      rows.push_back(batch.ids_bc);
      if (block.empty()) block = stream.place().substr(stream.place().find(' ', stream.place().find(' ') + 1) + 1);
    }
    CHECK(scored == tokens.size() - 200);
    return rows;
  };
  const auto first = targets(), second = targets();
  CHECK(first != second);
  // With the documents in the stream's own order every row would end within one.
  CHECK(std::ssize(first) * 64 < tokens.size() + 3 * 64);
}

TEST_CASE("evaluation has every document once, in order, cut to the context") {
  const ScratchFolder folder;
  const Tokens a = labelled(folder, "a", 33), tokens = join({a, labelled(folder, "b", 7)});
  REQUIRE(a.shards() > 2);
  for (const int64_t size : {1, 6, 40, 100}) {
    const DocumentBatches batches(tokens, size, kContext);
    CHECK(batches.documents() == 40);
    std::vector<Row> rows;
    for (int64_t i = 0; i < batches.batches(); ++i) {
      const Batch batch = batches.at(i);
      CHECK(batch.scored == batch.batch);
      CHECK(batch.context == *std::max_element(batch.lengths_b.begin(), batch.lengths_b.end()));
      const auto more = documents_of({batch});
      rows.insert(rows.end(), more.begin(), more.end());
    }
    REQUIRE(rows.size() == 40);
    for (int i = 0; i < 40; ++i) {
      const int number = i < 33 ? i : i - 33;
      const int64_t length = std::min<int64_t>(number + 1, kContext);
      CHECK(rows[static_cast<size_t>(i)] == Row{number % 5, length, std::vector<int64_t>(static_cast<size_t>(length), 'a' + number % 26)});
    }
  }
}

TEST_CASE("a training takes every document once per epoch, in another order each time") {
  const ScratchFolder folder;
  const Tokens tokens = labelled(folder, "a", 40);
  SequenceStream stream({tokens}, {.context = kContext, .seed = 3, .shuffle_buffer = 16, .whole_documents = true});
  std::set<std::vector<Row>> orders;
  for (int epoch = 0; epoch < 2; ++epoch) {
    const std::vector<Row> rows = documents_of(stream.next_step(8, 5));
    orders.insert(rows);
  }
  CHECK(orders.size() == 2);
  // The buffer reaches over the end of an epoch, so 16 * 40 documents are 16 epochs, each document 16 times.
  SequenceStream many({tokens}, {.context = kContext, .seed = 3, .shuffle_buffer = 16, .whole_documents = true});
  std::map<Row, int> times;
  for (const Row& row : documents_of(many.next_step(16, 40))) ++times[row];
  CHECK(times.size() == 40);
  CHECK(std::all_of(times.begin(), times.end(), [](const auto& each) { return each.second == 16; }));
}

TEST_CASE("documents without labels") {
  const ScratchFolder folder;
  const Tokens plain = ShardedTokens::open(prepared(folder, "plain", "a\nb\n"), ByteTokenizer());
  CHECK(error_of([&] { DocumentBatches(plain, 1, 4); }) == "plain: has no labels");
  CHECK(error_of([&] { SequenceStream({plain}, {.context = 4, .whole_documents = true}); }) == "plain: has no labels");
  const Tokens tokens = labelled(folder, "a", 3);
  CHECK(error_of([&] { DocumentBatches(tokens, 0, 4); }) == "batches of documents: batch 0 and context 4, expected 1 or more of each");
  CHECK(error_of([&] { DocumentBatches(tokens, 2, 4).at(2); }) == "batches of documents: no batch 2 among 2");
}
