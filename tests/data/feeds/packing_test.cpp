// Packed documents: rows are those of best fit spelled out, every token but the first of a document is predicted once, and a stream of rows
// goes on from any place.
#include "data/feeds/packing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "data/feeds/conversations.h"
#include "data/feeds/sequence_stream.h"
#include "tests/data/ids.h"
#include "tests/data/shards/shard_files.h"

using namespace ricci;
using namespace test_data;

namespace {

// Documents of 1 to `longest` tokens, each of letters and a line end.
Tokens corpus(const ScratchFolder& folder, const std::string& name, int count, uint64_t longest, const std::string& letters = "abcdef") {
  Sequence sequence(7);
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (uint64_t length = sequence.below(longest); length-- > 0;) text += letters[sequence.below(letters.size())];
    text += '\n';
  }
  return ShardedTokens::open(prepared(folder, name, text, 1500), ByteTokenizer());
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

// Conversations of 20 to 70 tokens, which all count.
class Talks final : public TokenSource {
 public:
  explicit Talks(int64_t count) {
    Sequence sequence(3);
    for (int64_t i = 0; i < count; ++i) ends_.push_back(ends_.back() + 20 + static_cast<int64_t>(sequence.below(51)));
  }
  int64_t size() const override { return ends_.back(); }
  int64_t vocab_size() const override { return 20; }
  uint64_t hash() const override { return 0; }
  uint64_t tokenizer_hash() const override { return 0; }
  const std::string& name() const override { return name_; }
  void read(int64_t first, std::span<int64_t> ids) const override {
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = 10 + (first + static_cast<int64_t>(i)) % 10;
  }
  int64_t documents(int64_t) const override { return std::ssize(ends_) - 1; }
  TokenSpan document(int64_t, int64_t i) const override { return {ends_[static_cast<size_t>(i)], ends_[static_cast<size_t>(i) + 1]}; }

 private:
  std::vector<int64_t> ends_{0};
  std::string name_ = "talks";
};

// The positions of a step that no conversation is read at, for each target that counts.
double padding_of(bool packs, int64_t sequences) {
  const Tokens talks = Conversations(Talks(5000), 255);
  SequenceStream stream(
      {talks}, {.context = 255, .seed = 1, .whole_documents = true, .conversations = true, .full_width = false, .packs = packs});
  int64_t padded = 0, scored = 0;
  for (int step = 0; step < 50; ++step) {
    const Batch batch = stream.next_step(1, sequences)[0];
    scored += batch.scored;
    for (int64_t b = 0; b < batch.batch; ++b) {
      const auto first = batch.targets_bc.begin() + b * batch.context, end = first + batch.context;
      const auto last = std::find_if(std::reverse_iterator(end), std::reverse_iterator(first), [](int64_t id) { return id >= 0; }).base();
      padded += end - last;
    }
  }
  return static_cast<double>(padded) / static_cast<double>(scored);
}

int64_t tokens_of(const PackedRow& row) {
  int64_t tokens = 0;
  for (const PackedPiece& piece : row) tokens += piece.tokens;
  return tokens;
}

std::vector<std::vector<int64_t>> everything_of(const std::vector<Batch>& step) {
  std::vector<std::vector<int64_t>> all;
  for (const Batch& batch : step)
    for (int64_t b = 0; b < batch.batch; ++b)
      for (const std::vector<int64_t>* part : {&batch.ids_bc, &batch.targets_bc, &batch.starts_bc})
        all.emplace_back(part->begin() + b * batch.context, part->begin() + (b + 1) * batch.context);
  return all;
}

}  // namespace

TEST_CASE("rows take the longest document that fits, the earliest of equals, and cut the shortest where they may") {
  const ScratchFolder folder;
  const Tokens tokens = corpus(folder, "small", 500, 40);
  for (const int64_t buffer : {1, 2, 9, 1000})
    for (const bool cuts : {false, true})
      for (const int64_t row : {41, 64, 200}) {
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

TEST_CASE("documents longer than a row are cut, and every token but the first of a document is predicted once") {
  const ScratchFolder folder;
  const Tokens tokens = corpus(folder, "long", 60, 300);
  DocumentOrder order(tokens, 5);
  std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>> parts;  // of each document: first token and end
  for (const PackedRow& row : pack_documents(order, {.row = 33, .buffer = 8, .documents = 60, .cuts = true}))
    for (const PackedPiece& piece : row) {
      DocumentOrder at(tokens, 5);
      at.go_to(piece.place);
      parts[at.rest().end].emplace_back(at.rest().first, at.rest().first + piece.tokens);
    }
  CHECK(parts.size() == 60);
  for (const auto& [end, of_document] : parts) {
    int64_t next = of_document[0].first;
    for (const auto& [first, part_end] : of_document) {
      CHECK(first == next);
      next = part_end - (part_end < end ? 1 : 0);
    }
    CHECK(next == end);
  }
}

TEST_CASE("a batch of packed rows: the last token of a document and padding predict nothing") {
  const std::vector<std::vector<std::vector<int64_t>>> rows{{{1, 2, 3}, {4, 5}}, {{6, 7, 8, 9, 1, 2, 3}}, {{5, 14, 16}, {3, 13}}};
  const Batch text = packed_rows(std::span(rows).first(2), 6, 0);
  CHECK(text.ids_bc == std::vector<int64_t>{1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 1, 2});
  CHECK(text.targets_bc == std::vector<int64_t>{2, 3, -1, 5, -1, -1, 7, 8, 9, 1, 2, 3});
  CHECK(text.starts_bc == std::vector<int64_t>{0, 0, 0, 3, 3, 5, 0, 0, 0, 0, 0, 0});
  CHECK(text.scored == 9);
  // Of conversations 10 and more is a token that counts.
  const Batch talks = packed_rows(std::span(rows).subspan(2), 6, 10);
  CHECK(talks.ids_bc == std::vector<int64_t>{5, 4, 6, 3, 3, 0});
  CHECK(talks.targets_bc == std::vector<int64_t>{4, 6, -1, 3, -1, -1});
  CHECK(talks.starts_bc == std::vector<int64_t>{0, 0, 0, 3, 3, 5});
  CHECK(talks.scored == 3);
}

TEST_CASE("a stream of packed rows goes on from any place, and ranks share its steps") {
  const ScratchFolder folder;
  const std::vector<Tokens> corpora = {corpus(folder, "a", 300, 40, "abc"), corpus(folder, "b", 90, 60, "xyz")};
  for (const int64_t buffer : {1, 5, 64, 100'000}) {
    const StreamOptions options{.context = 30, .seed = 4, .shuffle_buffer = buffer, .weights = {2, 1}, .packs = true};
    SequenceStream whole(corpora, options);
    std::string place;
    for (int step = 0; step < 60; ++step) {
      SequenceStream resumed(corpora, options), first(corpora, options), second(corpora, options);
      for (SequenceStream* stream : {&resumed, &first, &second})
        if (step > 0) stream->go_to(place);
      const auto expected = everything_of(whole.next_step(2, 5));
      CHECK(everything_of(resumed.next_step(1, 10)) == expected);
      auto shared = everything_of(first.next_step({0, 1}, 2, 5));
      const auto rest = everything_of(second.next_step({1, 2}, 2, 5));
      shared.insert(shared.end(), rest.begin(), rest.end());
      CHECK(shared == expected);
      place = whole.place();
      CHECK(resumed.place() == place);
      CHECK(first.place() == place);
    }
    CHECK(place.size() < 60);
  }
  SequenceStream stream({corpora[0]}, {.context = 30, .packs = true});
  stream.go_to("0 99999 0 0 0 0");
  CHECK(contains(error_of([&] { stream.next_step(1, 1); }), "a: row 99999 of "));
}

TEST_CASE("packed conversations have less than half of the padding that they have in rows of their own") {
  const double alone = padding_of(false, 32), packed = padding_of(true, 6);
  CHECK(alone > 0.4);
  CHECK(packed < alone / 2);
}

TEST_CASE("an epoch of packed rows has every document once, in another order than the next") {
  const ScratchFolder folder;
  const Tokens tokens = corpus(folder, "small", 200, 30);
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
