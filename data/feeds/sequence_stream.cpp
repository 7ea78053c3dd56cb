#include "data/feeds/sequence_stream.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "core/error.h"
#include "core/files/checksum.h"
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
  return std::clamp<int64_t>(options.whole_documents ? documents_of(tokens) : tokens.size() / options.context, 1, options.shuffle_buffer);
}

std::vector<double> shares_of(const std::vector<Tokens>& corpora, const StreamOptions& options) {
  std::vector<double> shares;
  double sum = 0;
  for (size_t i = 0; i < corpora.size(); ++i) {
    const int64_t size = options.whole_documents ? documents_of(corpora[i]) : corpora[i].size();
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
    if (o.whole_documents) check_labelled(tokens);
    else if (tokens.size() <= o.context)
      fail("sequence stream: {} has {} tokens, but a context of {} needs {}", {tokens.name(), tokens.size(), o.context, o.context + 1});
}

}  // namespace

ShuffledSequences::ShuffledSequences(const Tokens& tokens, const StreamOptions& options, uint64_t seed)
    : tokens_(tokens),
      head_(tokens, seed),
      at_(tokens, seed),
      context_(options.context),
      buffer_(buffer_of(tokens, options)),
      whole_documents_(options.whole_documents),
      seed_(seed),
      order_(1, 0) {}

void ShuffledSequences::fill() {
  sequences_.clear();
  head_.go_to(block_);
  for (int64_t i = 0; i < buffer_; ++i) {
    sequences_.push_back(head_.place());
    whole_documents_ ? head_.skip_document() : head_.skip(context_);
  }
  order_ = Permutation(static_cast<uint64_t>(buffer_), hash_bytes("shuffle buffer", seed_ + static_cast<uint64_t>(taken_ / buffer_)));
}

StreamPlace ShuffledSequences::next() {
  if (sequences_.empty()) fill();
  const StreamPlace place = sequences_[order_(static_cast<uint64_t>(taken_++ % buffer_))];
  if (taken_ % buffer_ == 0) {
    block_ = head_.place();
    sequences_.clear();
  }
  return place;
}

std::vector<int64_t> ShuffledSequences::read() {
  std::vector<int64_t> ids(static_cast<size_t>(context_ + 1));
  at_.go_to(next());
  at_.read(ids);
  return ids;
}

LabelledIds ShuffledSequences::read_document() {
  at_.go_to(next());
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

Batch SequenceStream::packed_batch(int64_t sequences) {
  Batch batch{sequences, options_.context, {}, {}, sequences * options_.context};
  for (int64_t b = 0; b < sequences; ++b) {
    const std::vector<int64_t> ids = next_corpus().read();
    batch.ids_bc.insert(batch.ids_bc.end(), ids.begin(), ids.end() - 1);
    batch.targets_bc.insert(batch.targets_bc.end(), ids.begin() + 1, ids.end());
  }
  leave_out(corpora_[0].first_id(), batch, batch.targets_bc);
  return batch;
}

Batch SequenceStream::document_batch(int64_t sequences) {
  std::vector<LabelledIds> documents;
  for (int64_t b = 0; b < sequences; ++b) documents.push_back(next_corpus().read_document());
  return batch_of(documents, options_.full_width ? options_.context : 0);
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
    step.push_back(options_.whole_documents ? document_batch(sequences) : packed_batch(sequences));
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

namespace {

// A seed for each epoch, and for each shard in it (the shards themselves: -1).
uint64_t derived_seed(uint64_t seed, int64_t epoch, int64_t shard) {
  const std::array numbers{epoch, shard};
  return xxh64(bytes_of(numbers), seed);
}

}  // namespace

DocumentOrder::DocumentOrder(const Tokens& tokens, uint64_t seed) : tokens_(tokens), seed_(seed), shards_(1, 0), documents_(1, 0) {
  if (tokens.size() == 0) fail("{}: has no tokens", {tokens.name()});
  enter_epoch();
}

void DocumentOrder::enter_epoch() {
  shards_ = Permutation(static_cast<uint64_t>(tokens_.shards()), derived_seed(seed_, place_.epoch, -1));
  enter_shard();
}

void DocumentOrder::enter_shard() {
  const auto shard = static_cast<int64_t>(shards_(static_cast<uint64_t>(place_.shard)));
  documents_ = Permutation(static_cast<uint64_t>(tokens_.documents(shard)), derived_seed(seed_, place_.epoch, shard));
  enter_document();
}

void DocumentOrder::enter_document() {
  const auto shard = static_cast<int64_t>(shards_(static_cast<uint64_t>(place_.shard)));
  document_ = tokens_.document(shard, static_cast<int64_t>(documents_(static_cast<uint64_t>(place_.document))));
}

int64_t DocumentOrder::label() const {
  const auto shard = static_cast<int64_t>(shards_(static_cast<uint64_t>(place_.shard)));
  return tokens_.label(shard, static_cast<int64_t>(documents_(static_cast<uint64_t>(place_.document))));
}

// Goes over tokens of the document, and to the next one at its end.
void DocumentOrder::pass(int64_t tokens) {
  place_.token += tokens;
  if (place_.token < document_.size()) return;
  place_.token = 0;
  if (++place_.document < static_cast<int64_t>(documents_.size())) return enter_document();
  place_.document = 0;
  if (++place_.shard < tokens_.shards()) return enter_shard();
  place_.shard = 0;
  ++place_.epoch;
  enter_epoch();
}

void DocumentOrder::read(std::span<int64_t> ids) {
  while (!ids.empty()) {
    const auto count = std::min(static_cast<size_t>(rest().size()), ids.size());
    tokens_.read(rest().first, ids.first(count));
    ids = ids.subspan(count);
    pass(static_cast<int64_t>(count));
  }
}

void DocumentOrder::skip(int64_t tokens) {
  while (tokens > 0) {
    const int64_t count = std::min(rest().size(), tokens);
    tokens -= count;
    pass(count);
  }
}

void DocumentOrder::go_to(const StreamPlace& place) {
  const auto impossible = [&] {
    fail("{}: epoch {}, shard {}, document {}, token {} is no place in its {} shards",
        {tokens_.name(), place.epoch, place.shard, place.document, place.token, tokens_.shards()});
  };
  if (place.epoch < 0 || place.shard < 0 || place.shard >= tokens_.shards() || place.document < 0 || place.token < 0) impossible();
  place_ = {place.epoch, place.shard, 0, 0};
  enter_epoch();
  if (place.document >= static_cast<int64_t>(documents_.size())) impossible();
  place_ = place;
  enter_document();
  if (place.token >= document_.size()) impossible();
}

}  // namespace ricci
