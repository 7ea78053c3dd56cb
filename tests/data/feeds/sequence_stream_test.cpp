// The shuffled stream of text rows, packed rows and full documents: every document once per epoch, mixtures in proportion, rows equal to
// explicit best fit, documents with a mask, ranks that share a step, and streams that resume at any position.
#include "data/feeds/sequence_stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "core/fields.h"
#include "data/feeds/evaluation.h"
#include "data/feeds/feed.h"
#include "data/shards/tokens.h"
#include "tests/data/feeds/corpora.h"
#include "tests/data/ids.h"

using namespace ricci;
using namespace test_data;

namespace {

std::multiset<std::string> lines_of(const std::string& text) {
  std::multiset<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

std::vector<Batch> batches_of(SequenceStream& stream, int64_t count) {
  std::vector<Batch> all;
  while (std::ssize(all) < count) all.push_back(stream.next());
  return all;
}

// Each part of each row of some batches.
std::vector<std::vector<int64_t>> rows_of(const std::vector<Batch>& step) {
  std::vector<std::vector<int64_t>> all;
  for (const Batch& batch : step)
    for (int64_t b = 0; b < batch.ids_bc.shape()[0]; ++b)
      for (const Tensor& part : {batch.ids_bc, batch.targets, batch.lengths_b})
        if (part) all.push_back(numbers_of(part.rows(b, 1)));
  return all;
}

int64_t width_of(const Batch& batch) { return batch.ids_bc.shape()[1]; }

constexpr int64_t kContext = 20;

std::vector<int64_t> read_ids(const Tokens& tokens, const std::vector<TokenSpan>& pieces) {
  std::vector<int64_t> all;
  for (const TokenSpan& piece : pieces) {
    std::vector<int64_t> ids(static_cast<size_t>(piece.size()));
    tokens.read(piece.first, ids);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

// The full next document.
TokenSpan next_document(DocumentOrder& order) { return order.take(order.rest().size())[0]; }

using PackedRow = std::vector<TokenSpan>;

// Best fit by looking at every document of the buffer.
std::vector<PackedRow> packed_plainly(DocumentOrder order, const PackingOptions& of) {
  std::vector<TokenSpan> waiting;  // in order of arrival
  int64_t taken = 0;
  const auto fill = [&] {
    for (; taken < of.documents && std::ssize(waiting) < of.buffer; ++taken) waiting.push_back(next_document(order));
  };
  std::vector<PackedRow> rows;
  for (fill(); !waiting.empty();) {
    PackedRow row;
    for (int64_t left = of.row; left > 0 && !waiting.empty(); fill()) {
      size_t best = waiting.size(), shortest = 0;
      for (size_t i = 0; i < waiting.size(); ++i) {
        if (waiting[i].size() <= left && (best == waiting.size() || waiting[i].size() > waiting[best].size())) best = i;
        if (waiting[i].size() < waiting[shortest].size()) shortest = i;
      }
      if (best < waiting.size()) {
        row.push_back(waiting[best]);
        left -= waiting[best].size();
        waiting.erase(waiting.begin() + static_cast<int64_t>(best));
      } else if (of.cuts && left > 1) {
        row.push_back({waiting[shortest].first, waiting[shortest].first + left});
        waiting[shortest].first += left - 1;
        left = 0;
      } else {
        break;
      }
    }
    rows.push_back(row);
  }
  return rows;
}

int64_t size_of(const PackedRow& row) {
  int64_t tokens = 0;
  for (const TokenSpan& piece : row) tokens += piece.size();
  return tokens;
}

// The positions of all pieces.
std::vector<std::pair<int64_t, int64_t>> ends_of(const std::vector<PackedRow>& rows) {
  std::vector<std::pair<int64_t, int64_t>> all;
  for (const PackedRow& row : rows) {
    for (const TokenSpan& piece : row) all.emplace_back(piece.first, piece.end);
    all.emplace_back(-1, -1);
  }
  return all;
}

// A row of a batch: label, length, and the ids of its document.
using Document = std::tuple<int64_t, int64_t, std::vector<int64_t>>;
Document row_of(const Batch& batch, int64_t b) {
  const int64_t length = batch.lengths_b.data<int64_t>()[b];
  std::vector<int64_t> ids = numbers_of(batch.ids_bc.rows(b, 1));
  CHECK(std::all_of(ids.begin() + length, ids.end(), [](int64_t id) { return id == 0; }));
  ids.resize(static_cast<size_t>(length));
  return {batch.targets.data<int64_t>()[b], length, ids};
}

std::vector<Document> documents_of(const std::vector<Batch>& step) {
  std::vector<Document> all;
  for (const Batch& batch : step)
    for (int64_t b = 0; b < batch.ids_bc.shape()[0]; ++b) all.push_back(row_of(batch, b));
  return all;
}

}  // namespace

TEST_CASE("an epoch has every document once, in another order than the next") {
  const ScratchFolder folder;
  const std::string text = documents(400, 40, "abcdef");
  const Tokens tokens = corpus(folder);
  REQUIRE(tokens.shards() > 4);
  DocumentOrder order(tokens, 11), same(tokens, 11), other(tokens, 12);
  std::set<std::vector<int64_t>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    CHECK(order.place() == StreamPlace{epoch, 0, 0, 0});
    const std::vector<int64_t> ids = read_ids(tokens, order.take(tokens.size()));
    CHECK(lines_of(ByteTokenizer().decode(ids)) == lines_of(text));
    orders.insert(ids);
  }
  CHECK(orders.size() == 3);
  const std::vector<int64_t> again = read_ids(tokens, same.take(tokens.size()));
  CHECK(orders.count(again) == 1);
  CHECK(again != read_ids(tokens, other.take(tokens.size())));
}

TEST_CASE("tokens are taken from any place as if the order had never stopped there") {
  const ScratchFolder folder;
  const Tokens tokens = corpus(folder);
  DocumentOrder reading(tokens, 1);
  Sequence sequence(9);
  for (int i = 0; i < 300; ++i) {
    const auto count = static_cast<int64_t>(1 + sequence.below(200));
    DocumentOrder other(tokens, 1);
    other.go_to(reading.place());
    const std::vector<int64_t> ids = read_ids(tokens, reading.take(count));
    CHECK(std::ssize(ids) == count);
    CHECK(read_ids(tokens, other.take(count)) == ids);
    CHECK(other.place() == reading.place());
  }
  CHECK(reading.place().epoch > 1);
  CHECK(error_of([&] { reading.go_to({0, tokens.shards(), 0, 0}); }) != "no error");
  CHECK(error_of([&] { reading.go_to({0, 0, 1 << 20, 0}); }) != "no error");
  CHECK(error_of([&] { reading.go_to({0, 0, 0, 1 << 20}); }) == "small: token 1048576 is outside its document");
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
      const Batch a = stream.next(), b = plain.next();
      mixed.push_back(numbers_of(a.ids_bc)), in_order.push_back(numbers_of(b.ids_bc));
      CHECK(std::equal(mixed.back().begin() + 1, mixed.back().end(), a.targets.data<int64_t>()));
      CHECK(a.scored == context);
      if (i > 0) CHECK(in_order.back()[0] == follower);
      follower = numbers_of(b.targets).back();
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
    SequenceStream stream(corpora, {.context = 50, .batch = 8000, .seed = 2, .shuffle_buffer = 8, .weights = weights});
    std::vector<double> expected = weights.empty() ? std::vector<double>{} : weights, drawn(3, 0);
    if (weights.empty())
      for (const Tokens& tokens : corpora) expected.push_back(static_cast<double>(tokens.size()));
    const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
    constexpr int kDraws = 8000;
    const std::vector<int64_t> all = numbers_of(stream.next().ids_bc);
    for (auto first = all.begin(); first != all.end(); first += 50) {
      const std::span ids(first, 50);
      const int64_t letter = *std::max_element(ids.begin(), ids.end());
      CHECK(std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return id == letter || id == '\n'; }));
      ++drawn[static_cast<size_t>(letter - 'a')];
    }
    for (size_t i = 0; i < 3; ++i) CHECK(drawn[i] / kDraws == doctest::Approx(expected[i] / sum).epsilon(0.08));
  }
}

TEST_CASE("a stream is resumed at any place as if it had never stopped, and those who share its steps read all of them, none twice") {
  const ScratchFolder folder;
  const std::vector<Tokens> texts = {corpus(folder, "a", "abc"), corpus(folder, "b", "xyz", 100)},
                            labels = {labelled(folder, "c", 40), labelled(folder, "d", 9)};
  const StreamOptions plain{.context = 12, .batch = 3, .seed = 4, .weights = {2, 1}},
      packed{.context = 30, .batch = 3, .seed = 4, .weights = {2, 1}, .rows = RowKind::packed},
      whole{.context = kContext, .batch = 3, .seed = 4, .weights = {1, 2}, .rows = RowKind::whole, .full_width = true};
  constexpr int64_t kMicroBatches = 6;
  const std::vector<Range> ranges = {{0, 2}, {2, 5}, {5, 5}, {5, 6}};
  for (StreamOptions options : {plain, packed, whole})
    for (const int64_t buffer : {1, 5, 64, 100'000}) {  // the last is larger than an epoch
      options.shuffle_buffer = buffer;
      const std::vector<Tokens>& corpora = options.rows == RowKind::whole ? labels : texts;
      SequenceStream alone(corpora, options);
      std::deque<SequenceStream> parts;
      while (parts.size() < ranges.size()) parts.emplace_back(corpora, options);
      std::string place;
      for (int step = 0; step < 30; ++step) {
        SequenceStream resumed(corpora, options);
        resumed.go_to(step, place);
        const auto expected = rows_of(batches_of(alone, kMicroBatches));
        place = alone.place();
        CHECK(place.size() < 60);
        CHECK(rows_of(batches_of(resumed, kMicroBatches)) == expected);
        CHECK(resumed.place() == place);
        std::vector<std::vector<int64_t>> together;
        for (size_t i = 0; i < parts.size(); ++i) {
          std::vector<Batch> batches;
          for (int64_t number = 0; number < kMicroBatches; ++number)
            if (ranges[i].lo <= number && number < ranges[i].hi) batches.push_back(parts[i].next());
            else parts[i].skip();
          for (const Batch& batch : batches) CHECK(width_of(batch) == options.context);
          const auto part = rows_of(batches);
          together.insert(together.end(), part.begin(), part.end());
          CHECK(parts[i].place() == place);
        }
        CHECK(together == expected);
      }
    }
}

TEST_CASE("data that cannot be streamed") {
  const ScratchFolder folder;
  const Tokens tokens = corpus(folder), few = tokens_of({1, 2, 3}, 256);
  CHECK(error_of([&] { SequenceStream({few}, {.context = 3}); }) == "sequence stream: ids has 3 tokens, but a context of 3 needs 4");
  SequenceStream stream({tokens}, {.context = 3});
  for (const char* place : {"", "x", "1 2 3", "0 -1 0 0 0 0", "99999999999999999999"})
    CHECK(error_of([&] { stream.go_to(1, place); }) == std::string("sequence stream: '") + place + "' is not a position in the data");
  SequenceStream packed({tokens}, {.context = 30, .rows = RowKind::packed});
  packed.go_to(1, "0 99999 0 0 0 0");
  CHECK(contains(error_of([&] { packed.next(); }), "small: row 99999 is outside its "));
}

TEST_CASE("joined tokens are those of one after the other, with all documents") {
  const ScratchFolder folder;
  const Tokens a = corpus(folder, "a"),
               b = Tokens::open(folder.write("b", llmc_shard(20240520, 1, std::vector<int64_t>(5000, 7), 2)), ByteTokenizer()),
               c = corpus(folder, "c", "xyz");
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

TEST_CASE("rows take the longest document that fits, the earliest of equals, and cut the shortest if allowed") {
  const ScratchFolder folder;
  const Tokens tokens = corpus(folder, "small", "abcdef", 500);
  for (const int64_t buffer : {1, 2, 9, 1000})
    for (const bool cuts : {false, true})
      for (const int64_t row : {33, 41, 64, 200}) {
        if (!cuts && row < 40) continue;  // a document is longer than a row
        DocumentOrder order(tokens, 3);
        const PackingOptions options{.row = row, .buffer = buffer, .documents = 400, .cuts = cuts};
        const std::vector<PackedRow> expected = packed_plainly(order, options), rows = pack_documents(order, options);
        CHECK(ends_of(rows) == ends_of(expected));
        DocumentOrder after(tokens, 3);
        for (int i = 0; i < 400; ++i) next_document(after);
        CHECK(order.place() == after.place());
        int64_t full = 0;
        for (const PackedRow& one : rows) full += size_of(one) >= row - 1;
        if (cuts) CHECK(full >= std::ssize(rows) - 1);
      }
}

TEST_CASE("a batch predicts the tokens that count from those before them, and is filled up") {
  const ScratchFolder folder;
  const Tokens text = tokens_of({1, 2, 3, 4, 5, 6, 7}, 9), pair = answers(folder, "pair", {{"ab", "c"}});
  const std::vector<Row> rows{{&text, {{0, 3}, {5, 7}, {3, 5}}}, {&pair, {{0, 3}}}, {&text, {{0, 4}}, -1, 2}};
  for (const int64_t width : {0, 6, 8}) {
    const Batch batch = read_batch(rows, width);
    REQUIRE(width_of(batch) == std::max<int64_t>(width, 6));
    CHECK(batch.scored == 6 + 1 + 1);
    CHECK(!batch.lengths_b);
    std::vector<std::vector<int64_t>> expected{
        {1, 2, 3, 6, 7, 4}, {2, 3, 6, 7, 4, 5}, {'a', 'b'}, {kNoTarget, 'c'}, {1, 2, 3}, {kNoTarget, kNoTarget, 4}};
    for (size_t i = 0; i < expected.size(); ++i) expected[i].resize(static_cast<size_t>(width_of(batch)), i % 2 ? kNoTarget : 0);
    CHECK(rows_of({batch}) == expected);
  }
  const std::vector<Row> labelled{{&text, {{0, 3}}, 4}, {&text, {{1, 3}}, 0}};
  CHECK(rows_of({read_batch(labelled)}) == std::vector<std::vector<int64_t>>{{1, 2, 3}, {4}, {3}, {2, 3, 0}, {0}, {2}});
}

TEST_CASE("documents with a mask: tokens that do not count are not targets, long documents are cut, those without an answer left out") {
  const ScratchFolder folder;
  const Tokens tokens = answers(folder, "pairs", {{"ab", "cd"}, {"abcdefgh", "xy"}, {"e", "fgh"}});
  REQUIRE(tokens.has_mask());
  const auto kept = [&](int64_t context) {
    const auto [some, counts] = keep_masked(tokens, context);
    CHECK(counts.all == some.documents(0));
    return std::vector<int64_t>{counts.all, counts.cut, counts.left_out};
  };
  CHECK(kept(9) == std::vector<int64_t>{3, 0, 0});
  CHECK(kept(8) == std::vector<int64_t>{3, 1, 0});
  CHECK(kept(7) == std::vector<int64_t>{2, 0, 1});
  CHECK(kept(2) == std::vector<int64_t>{2, 2, 1});
  CHECK(kept(1) == std::vector<int64_t>{1, 1, 2});
  CHECK(error_of([&] {
    keep_masked(answers(folder, "one", {{"abc", "d"}}), 2);
  }) == "one: no answer in its 1 documents begins within a context of 2 tokens");
  CHECK(error_of([&] { keep_masked(tokens, 0); }) == "documents with a mask: context is 0, expected 1 or more");

  const auto evaluated = [&](int64_t batch, int64_t context) {
    return EvaluationBatches::documents(keep_masked(tokens, context).first, batch, context);
  };
  const EvaluationBatches batches = evaluated(2, 7);
  CHECK(batches.has_answers());
  REQUIRE(batches.batches() == 1);
  const Batch batch = batches.at(0);
  CHECK(batch.ids_bc.shape() == Shape{2, 3});
  CHECK(numbers_of(batch.ids_bc) == std::vector<int64_t>{'a', 'b', 'c', 'e', 'f', 'g'});
  CHECK(numbers_of(batch.targets) == std::vector<int64_t>{kNoTarget, 'c', 'd', 'f', 'g', 'h'});
  CHECK(batch.scored == 5);
  CHECK(numbers_of(evaluated(5, 2).at(0).targets) == std::vector<int64_t>{kNoTarget, 'c', 'f', 'g'});
  CHECK(evaluated(5, 9).batch() == 3);
}

TEST_CASE("packed documents with a mask are whole, follow each other in a row, and only their answers are targets") {
  const ScratchFolder folder;
  const Tokens tokens = keep_masked(answers(folder, "pairs", {{"ab", "cd"}, {"e", "fg"}, {"hi", "j"}}), 8).first;
  SequenceStream stream({tokens}, {.context = 8, .seed = 1, .rows = RowKind::packed});
  std::vector<Batch> rows = batches_of(stream, 2);
  if (*rows[0].ids_bc.data<int64_t>() != 'a') std::swap(rows[0], rows[1]);
  const Batch& longest = rows[0];  // it has the longest document, the first of equal ones in epoch order
  const bool has_e = longest.ids_bc.data<int64_t>()[4] == 'e';
  const std::vector<int64_t> ids{'a', 'b', 'c', 'd', has_e ? 'e' : 'h', has_e ? 'f' : 'i', 0, 0};
  CHECK(numbers_of(longest.ids_bc) == ids);
  CHECK(numbers_of(longest.targets) ==
        (has_e ? std::vector<int64_t>{-1, 'c', 'd', -1, 'f', 'g', -1, -1} : std::vector<int64_t>{-1, 'c', 'd', -1, -1, 'j', -1, -1}));
  CHECK(rows[0].scored + rows[1].scored == 5);
  CHECK(width_of(rows[1]) == 8);
  // As separate rows they are as long as the longest of a batch, or as the context.
  for (const bool wide : {false, true}) {
    SequenceStream whole({tokens}, {.context = 8, .batch = 3, .seed = 1, .rows = RowKind::whole, .full_width = wide});
    const Batch all = whole.next();
    CHECK(width_of(all) == (wide ? 8 : 3));
    CHECK(all.scored == 5);
  }
}

TEST_CASE("an epoch of packed rows has every document once, in another order than the next") {
  const ScratchFolder folder;
  const Tokens tokens = corpus(folder, "small", "abcdef", 200, 30);
  SequenceStream stream({tokens}, {.context = 63, .seed = 9, .rows = RowKind::packed});
  const auto epoch = [&] {
    int64_t scored = 0;
    std::vector<std::vector<int64_t>> rows;
    for (std::string block; block.empty() || stream.place().find(' ' + block) != std::string::npos;) {
      const Batch batch = stream.next();
      scored += batch.scored;
      rows.push_back(numbers_of(batch.ids_bc));
      if (block.empty()) block = stream.place().substr(stream.place().find(' ', stream.place().find(' ') + 1) + 1);
    }
    // Each token but the first of a row is a target; the first token of the rest of a cut document appears twice.
    CHECK(scored >= tokens.size() - std::ssize(rows));
    CHECK(scored <= tokens.size());
    return rows;
  };
  const auto first = epoch(), second = epoch();
  CHECK(first != second);
  // With the documents in the stream's own order every row would end within one.
  CHECK(std::ssize(first) * 64 < tokens.size() + 3 * 64);
}

TEST_CASE("evaluation has every document once, in order, cut to the context") {
  const ScratchFolder folder;
  const Tokens a = labelled(folder, "a", 33), tokens = join({a, labelled(folder, "b", 7)});
  REQUIRE(a.shards() > 2);
  for (const int64_t size : {1, 6, 40, 100}) {
    const EvaluationBatches batches = EvaluationBatches::documents(tokens, size, kContext);
    CHECK(batches.rows() == 40);
    CHECK(!batches.has_answers());
    std::vector<Document> rows;
    for (int64_t i = 0; i < batches.batches(); ++i) {
      const Batch batch = batches.at(i);
      const std::vector<int64_t> lengths = numbers_of(batch.lengths_b);
      CHECK(batch.scored == std::ssize(lengths));
      CHECK(width_of(batch) == *std::max_element(lengths.begin(), lengths.end()));
      const auto more = documents_of({batch});
      rows.insert(rows.end(), more.begin(), more.end());
    }
    REQUIRE(rows.size() == 40);
    for (int i = 0; i < 40; ++i) {
      const int number = i < 33 ? i : i - 33;
      const int64_t length = std::min<int64_t>(number + 1, kContext);
      CHECK(rows[static_cast<size_t>(i)] ==
            Document{number % 5, length, std::vector<int64_t>(static_cast<size_t>(length), 'a' + number % 26)});
    }
  }
}

TEST_CASE("a training takes every document once per epoch, in another order each time") {
  const ScratchFolder folder;
  const Tokens tokens = labelled(folder, "a", 40);
  SequenceStream stream({tokens}, {.context = kContext, .batch = 5, .seed = 3, .shuffle_buffer = 16, .rows = RowKind::whole});
  std::set<std::vector<Document>> orders;
  for (int epoch = 0; epoch < 2; ++epoch) {
    const std::vector<Document> rows = documents_of(batches_of(stream, 8));
    orders.insert(rows);
  }
  CHECK(orders.size() == 2);
  // The buffer extends over the end of an epoch, so 16 * 40 documents are 16 epochs, each document 16 times.
  SequenceStream many({tokens}, {.context = kContext, .batch = 40, .seed = 3, .shuffle_buffer = 16, .rows = RowKind::whole});
  std::map<Document, int> times;
  for (const Document& row : documents_of(batches_of(many, 16))) ++times[row];
  CHECK(times.size() == 40);
  CHECK(std::all_of(times.begin(), times.end(), [](const auto& each) { return each.second == 16; }));
}

TEST_CASE("documents without labels") {
  const ScratchFolder folder;
  const Tokens plain = Tokens::open(prepared(folder, "plain", "a\nb\n"), ByteTokenizer());
  CHECK(error_of([&] { EvaluationBatches::documents(plain, 1, 4); }) == "plain: has no labels");
  CHECK(keep_masked(plain, 4).first.documents() == plain.documents());
  CHECK(error_of([&] { SequenceStream({plain}, {.context = 4, .rows = RowKind::whole}); }) == "plain: has no labels");
  const Tokens tokens = labelled(folder, "a", 3);
  CHECK(error_of([&] { EvaluationBatches::documents(tokens, 0, 4); }) ==
        "batches of documents: batch is 0 and context is 4; both must be 1 or more");
  CHECK(error_of([&] { EvaluationBatches::documents(tokens, 2, 4).at(2); }) == "evaluation: batch 2 does not exist; there are 2 batches");
}
