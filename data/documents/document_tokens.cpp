#include "data/documents/document_tokens.h"

#include <algorithm>
#include <utility>

#include "core/cpu/first_error.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "data/tokenizers/utf8.h"

namespace ricci {
namespace {

constexpr int64_t kGrain = 64;  // documents

std::vector<uint32_t> encode(const Document& document, const Tokenizer& tokenizer) {
  std::vector<int64_t> ids;
  try {
    tokenizer.append_ids(document.text, 0, ids);
    tokenizer.append_end(document.text, ids);
  } catch (const Error& error) {
    fail("{}: {}", {document.place, error.what()});
  }
  return {ids.begin(), ids.end()};
}

template <class T> uint64_t hash_of(const std::vector<T>& values, uint64_t seed) {
  return xxh64({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}, seed);
}

}  // namespace

std::vector<Document> read_documents(const TextSource& files, const DocumentOptions& options) {
  std::vector<Document> all;
  DocumentReader reader(files.each_file(), options, complete_utf8_prefix);
  for (DocumentPiece piece; reader.next(piece);) {
    if (piece.starts) all.push_back({"", piece.label, piece.place});
    all.back().text += piece.text;
  }
  return all;
}

DocumentTokens::DocumentTokens(std::string name, const std::vector<Document>& documents, const Tokenizer& tokenizer, int64_t classes)
    : name_(std::move(name)), vocab_size_(tokenizer.vocab_size()), classes_(classes), tokenizer_hash_(tokenizer.hash()), starts_{0} {
  std::vector<std::vector<uint32_t>> encoded(documents.size());
  parallel_for_first_error(static_cast<int64_t>(documents.size()), kGrain, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) encoded[i] = encode(documents[i], tokenizer);
  });
  for (size_t i = 0; i < documents.size(); ++i) {
    if (encoded[i].empty()) continue;
    ids_.insert(ids_.end(), encoded[i].begin(), encoded[i].end());
    starts_.push_back(size());
    labels_.push_back(documents[i].label);
    std::vector<uint32_t>().swap(encoded[i]);
  }
  if (ids_.empty()) fail("{}: the documents hold no tokens", {name_});
}

uint64_t DocumentTokens::hash() const { return hash_of(labels_, hash_of(starts_, hash_of(ids_, 0))); }

void DocumentTokens::read(int64_t first, std::span<int64_t> ids) const {
  check_range(first, ids);
  std::copy_n(ids_.begin() + first, ids.size(), ids.begin());
}

TokenSpan DocumentTokens::document(int64_t, int64_t index) const {
  return {starts_.at(static_cast<size_t>(index)), starts_.at(static_cast<size_t>(index) + 1)};
}

}  // namespace ricci
