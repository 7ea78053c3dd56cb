#include "data/feeds/sequence_stream.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "core/error.h"
#include "core/files/checksum.h"
#include "data/feeds/conversations.h"
#include "data/shards/tokens.h"

namespace ricci {

namespace {

int64_t documents_of(const Tokens& tokens) {
  int64_t documents = 0;
  for (int64_t shard = 0; shard < tokens.shards(); ++shard) documents += tokens.documents(shard);
  return documents;
}

// The buffer of a short corpus holds an epoch of it, and not several.
int64_t buffer_of(const Tokens& tokens, const StreamOptions& options) {
  const bool documents = options.whole_documents || options.packs;
  return std::clamp<int64_t>(documents ? documents_of(tokens) : tokens.size() / options.context, 1, options.shuffle_buffer);
}

// The documents of 64 buffers are packed together. Rows of the last one find fewer documents to choose from, but there are few of them.
std::optional<PackingOptions> packing_of(const Tokens& tokens, const StreamOptions& options) {
  constexpr int64_t kBuffers = 64;
  if (!options.packs) return {};
  return PackingOptions{.row = options.context + 1,
      .buffer = options.shuffle_buffer,
      .documents = std::clamp<int64_t>(documents_of(tokens), 1, kBuffers * options.shuffle_buffer),
      .cuts = !options.conversations};
}

std::vector<double> shares_of(const std::vector<Tokens>& corpora, const StreamOptions& options) {
  std::vector<double> shares;
  double sum = 0;
  for (size_t i = 0; i < corpora.size(); ++i) {
    const int64_t size = options.whole_documents && !options.packs ? documents_of(corpora[i]) : corpora[i].size();
    shares.push_back(sum += options.weights.empty() ? static_cast<double>(size) : options.weights[i]);
  }
  for (double& share : shares) share /= sum;
  return shares;
}

void check(const std::vector<Tokens>& corpora, const StreamOptions& o) {
  if (corpora.empty()) fail("data: no tokens were given");
  if (o.context < 1 || o.shuffle_buffer < 1)
    fail("sequence stream: context {} and shuffle_buffer {}, expected 1 or more of each", {o.context, o.shuffle_buffer});
  if (!o.weights.empty() && o.weights.size() != corpora.size())
    fail("weights: {} of them for {} corpora of data", {o.weights.size(), corpora.size()});
  for (const double weight : o.weights)
    if (!(weight > 0 && std::isfinite(weight))) fail("weights: {}, expected more than 0", {weight});
  check_same_tokenizer(corpora);
  for (const Tokens& tokens : corpora)
    if (o.whole_documents && !o.conversations) check_labelled(tokens);
    else if (!o.whole_documents && tokens.size() <= o.context)
      fail("sequence stream: {} has {} tokens, but a context of {} needs {}", {tokens.name(), tokens.size(), o.context, o.context + 1});
}

}  // namespace

ShuffledSequences::ShuffledSequences(const Tokens& tokens, const StreamOptions& options, uint64_t seed)
    : tokens_(tokens),
      head_(tokens, seed),
      at_(tokens, seed),
      context_(options.context + (options.conversations ? 1 : 0)),
      buffer_(buffer_of(tokens, options)),
      whole_documents_(options.whole_documents),
      packing_(packing_of(tokens, options)),
      seed_(seed),
      order_(1, 0) {}

void ShuffledSequences::fill() {
  sequences_.clear();
  head_.go_to(block_);
  uint64_t number = static_cast<uint64_t>(taken_ / buffer_);  // the buffer's
  if (packing_) {
    const std::array place{block_.epoch, block_.shard, block_.document, block_.token};
    number = xxh64(bytes_of(place), 0);
    sequences_ = pack_documents(head_, *packing_);
    if (taken_ >= std::ssize(sequences_))
      fail("{}: row {} of {} packed ones is no place in it", {tokens_.name(), taken_, sequences_.size()});
  }
  for (int64_t i = 0; i < buffer_ && !packing_; ++i) {
    sequences_.push_back({{head_.place(), 0}});
    whole_documents_ ? head_.skip_document() : head_.skip(context_);
  }
  order_ = Permutation(sequences_.size(), hash_bytes("shuffle buffer", seed_ + number));
}

PackedRow ShuffledSequences::next() {
  if (sequences_.empty()) fill();
  const auto count = std::ssize(sequences_);
  const PackedRow row = sequences_[order_(static_cast<uint64_t>(taken_++ % count))];
  if (taken_ % count == 0) {
    block_ = head_.place();
    sequences_.clear();
    if (packing_) taken_ = 0;
  }
  return row;
}

std::vector<int64_t> ShuffledSequences::read() {
  std::vector<int64_t> ids(static_cast<size_t>(context_ + 1));
  at_.go_to(next()[0].place);
  at_.read(ids);
  return ids;
}

std::vector<std::vector<int64_t>> ShuffledSequences::read_packed() {
  std::vector<std::vector<int64_t>> documents;
  for (const PackedPiece& piece : next()) {
    at_.go_to(piece.place);
    at_.read(documents.emplace_back(static_cast<size_t>(piece.tokens)));
  }
  return documents;
}

LabelledIds ShuffledSequences::read_document() {
  at_.go_to(next()[0].place);
  return ricci::read_document(tokens_, at_.rest(), at_.label(), context_);
}

void ShuffledSequences::go_to(const Place& place) {
  head_.go_to(place.block);
  taken_ = place.taken;
  block_ = place.block;
  sequences_.clear();
}

SequenceStream::SequenceStream(std::vector<Tokens> corpora, const StreamOptions& options)
    : corpora_(std::move(corpora)), options_(options) {
  check(corpora_, options_);
  shares_ = shares_of(corpora_, options_);
  for (size_t i = 0; i < corpora_.size(); ++i)
    sequences_.emplace_back(corpora_[i], options_, hash_bytes(format_message("corpus {}", {i}), options_.seed));
}

// The corpus that the next sequence comes from.
ShuffledSequences& SequenceStream::next_corpus() {
  const double draw = Philox{options_.seed, hash_bytes("mixture")}.uniform_f64(static_cast<uint64_t>(number_++));
  const auto corpus = std::upper_bound(shares_.begin(), shares_.end() - 1, draw) - shares_.begin();
  return sequences_[static_cast<size_t>(corpus)];
}

Batch SequenceStream::text_batch(int64_t sequences) {
  Batch batch{sequences, options_.context, {}, {}, sequences * options_.context};
  for (int64_t b = 0; b < sequences; ++b) {
    const std::vector<int64_t> ids = next_corpus().read();
    batch.ids_bc.insert(batch.ids_bc.end(), ids.begin(), ids.end() - 1);
    batch.targets_bc.insert(batch.targets_bc.end(), ids.begin() + 1, ids.end());
  }
  leave_out(corpora_[0].first_id(), batch, batch.targets_bc);
  return batch;
}

Batch SequenceStream::packed_batch(int64_t sequences) {
  std::vector<std::vector<std::vector<int64_t>>> rows;
  for (int64_t b = 0; b < sequences; ++b) rows.push_back(next_corpus().read_packed());
  return packed_rows(rows, options_.context, options_.conversations ? corpora_[0].vocab_size() / 2 : 0);
}

Batch SequenceStream::document_batch(int64_t sequences) {
  if (options_.packs) return packed_batch(sequences);
  std::vector<LabelledIds> documents;
  for (int64_t b = 0; b < sequences; ++b) documents.push_back(next_corpus().read_document());
  const int64_t width = options_.full_width ? options_.context : 0;
  return options_.conversations ? conversation_batch(documents, corpora_[0].vocab_size() / 2, width) : batch_of(documents, width);
}

std::vector<Batch> SequenceStream::next_step(Range mine, int64_t batches, int64_t sequences) {
  if (mine.lo < 0 || mine.lo > mine.hi || mine.hi > batches)
    fail("sequence stream: batches {} to {} of a step of {}", {mine.lo, mine.hi, batches});
  const auto skip = [&](int64_t count) {
    for (int64_t i = 0; i < count * sequences; ++i) next_corpus().skip();
  };
  skip(mine.lo);
  std::vector<Batch> step;
  for (int64_t i = mine.lo; i < mine.hi; ++i)
    step.push_back(options_.whole_documents || options_.packs ? document_batch(sequences) : text_batch(sequences));
  skip(batches - mine.hi);
  return step;
}

std::string SequenceStream::place() const {
  std::string text = std::to_string(number_);
  for (const ShuffledSequences& corpus : sequences_) {
    const auto [taken, block] = corpus.place();
    text += format_message(" {} {} {} {} {}", {taken, block.epoch, block.shard, block.document, block.token});
  }
  return text;
}

void SequenceStream::go_to(const std::string& place) {
  std::istringstream words(place);
  const auto next = [&] {
    int64_t number = -1;
    if (!(words >> number) || number < 0) fail("sequence stream: '{}' is no place in the data", {one_line(place)});
    return number;
  };
  number_ = next();
  for (ShuffledSequences& corpus : sequences_) corpus.go_to({next(), {next(), next(), next(), next()}});
  if (!(words >> std::ws).eof()) fail("sequence stream: '{}' is no place in the data", {one_line(place)});
}

}  // namespace ricci
