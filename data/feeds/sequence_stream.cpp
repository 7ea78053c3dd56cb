#include "data/feeds/sequence_stream.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "core/files/checksum.h"
#include "data/feeds/evaluation.h"

namespace ricci {

SequenceStream::SequenceStream(const std::vector<Tokens>& corpora, const StreamOptions& options)
    : Feed(options.batch, options.rows != RowKind::whole || options.full_width ? options.context : 0), options_(options) {
  const bool of_documents = options.rows == RowKind::whole;
  double sum = 0;
  for (const Tokens& tokens : corpora) {
    if (!tokens.has_mask() && of_documents) check_labelled(tokens);
    if (!tokens.has_mask() && !of_documents) check_text("sequence stream", tokens, options.batch, options.context);
    const size_t number = corpora_.size();
    const int64_t size = of_documents ? tokens.documents() : tokens.size();
    shares_.push_back(sum += options.weights.empty() ? static_cast<double>(size) : options.weights[number]);
    const uint64_t seed = hash_bytes(format_message("corpus {}", {number}), options.seed);
    corpora_.push_back({tokens, DocumentOrder(tokens, seed), seed});
  }
  for (double& share : shares_) share /= sum;
}

// Returns the next row of text with the token after it, or the next document.
Row SequenceStream::next_in_order(Corpus& corpus) const {
  DocumentOrder& documents = corpus.documents;
  if (options_.rows == RowKind::cut) {
    std::vector<TokenSpan> pieces = documents.take(options_.context);
    const int64_t after = documents.rest().first;
    if (pieces.back().end != after) pieces.push_back({after, after});
    ++pieces.back().end;
    return {&corpus.tokens, std::move(pieces)};
  }
  const int64_t label = documents.label();
  TokenSpan document = documents.take(documents.rest().size())[0];
  if (!corpus.tokens.has_mask()) document.end = std::min(document.end, document.first + options_.context);
  return {&corpus.tokens, {document}, label};
}

void SequenceStream::fill(Corpus& corpus) const {
  auto& [tokens, documents, seed, taken, block, buffer, order] = corpus;
  block = documents.place();
  uint64_t number = 0;  // identifies this buffer
  if (options_.rows == RowKind::packed) {
    const std::array place{block.epoch, block.shard, block.document, block.token};
    number = xxh64(bytes_of(place), 0);
    // Packs the documents of 64 buffers together. Only the last rows are filled from fewer documents.
    const int64_t choice = options_.shuffle_buffer, most = std::clamp<int64_t>(tokens.documents(), 1, 64 * choice);
    for (auto& row : pack_documents(documents, {options_.context + 1, choice, most, !tokens.has_mask()}))
      buffer.push_back({&tokens, std::move(row)});
    if (taken >= std::ssize(buffer)) fail("{}: row {} is outside its {} packed rows", {tokens.name(), taken, buffer.size()});
  } else {
    // The buffer of a short corpus contains at most one epoch.
    const int64_t rows = options_.rows == RowKind::cut ? tokens.size() / options_.context : tokens.documents();
    const int64_t size = std::clamp<int64_t>(rows, 1, options_.shuffle_buffer);
    number = static_cast<uint64_t>(taken / size);
    while (std::ssize(buffer) < size) buffer.push_back(next_in_order(corpus));
  }
  order = Permutation(buffer.size(), hash_bytes("shuffle buffer", seed + number));
}

// Samples a corpus by weight and returns its next row.
Row SequenceStream::next_row() {
  const double draw = Philox{options_.seed, hash_bytes("mixture")}.uniform_f64(static_cast<uint64_t>(number_++));
  const auto number = std::upper_bound(shares_.begin(), shares_.end() - 1, draw) - shares_.begin();
  Corpus& corpus = corpora_[static_cast<size_t>(number)];
  if (corpus.buffer.empty()) fill(corpus);
  const auto count = std::ssize(corpus.buffer);
  Row row = std::move(corpus.buffer[corpus.order(static_cast<uint64_t>(corpus.taken++ % count))]);
  if (corpus.taken % count == 0) {
    corpus.buffer.clear();
    if (options_.rows == RowKind::packed) corpus.taken = 0;
  }
  return row;
}

std::string SequenceStream::place() const {
  std::string text = std::to_string(number_);
  for (const Corpus& corpus : corpora_) {
    const StreamPlace& block = corpus.buffer.empty() ? corpus.documents.place() : corpus.block;
    text += format_message(" {} {} {} {} {}", {corpus.taken, block.epoch, block.shard, block.document, block.token});
  }
  return text;
}

void SequenceStream::go_to(int64_t step, const std::string& place) {
  if (step == 0) return;
  std::istringstream words(place);
  const auto next = [&] {
    int64_t number = -1;
    if (!(words >> number) || number < 0) fail("sequence stream: '{}' is not a position in the data", {one_line(place)});
    return number;
  };
  number_ = next();
  for (Corpus& corpus : corpora_) {
    corpus.taken = next();
    corpus.documents.go_to({next(), next(), next(), next()});
    corpus.buffer.clear();
  }
}

}  // namespace ricci
