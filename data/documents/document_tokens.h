// Documents of JSONL or TSV in memory, with their labels: for corpora that ricci-train reads as they are. Larger ones become shards
// (data/documents/prepare.h).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/documents/document_reader.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokens/tokens.h"

namespace ricci {

struct Document {
  std::string text;
  int32_t label = -1;
  std::string place;  // for messages: "a.jsonl:17"
};

// All documents of the files, in their order. Errors: those of DocumentReader.
std::vector<Document> read_documents(const TextSource& files, const DocumentOptions& options);

class DocumentTokens final : public TokenSource {
 public:
  // A document without tokens is left out. Errors: those of the tokenizer, with the place of the document; no tokens at all.
  DocumentTokens(std::string name, const std::vector<Document>& documents, const Tokenizer& tokenizer, int64_t classes);

  int64_t size() const override { return static_cast<int64_t>(ids_.size()); }
  int64_t vocab_size() const override { return vocab_size_; }
  uint64_t hash() const override;
  uint64_t tokenizer_hash() const override { return tokenizer_hash_; }
  const std::string& name() const override { return name_; }
  void read(int64_t first, std::span<int64_t> ids) const override;
  int64_t documents(int64_t) const override { return static_cast<int64_t>(labels_.size()); }
  TokenSpan document(int64_t, int64_t index) const override;
  int64_t classes() const override { return classes_; }
  int64_t label(int64_t, int64_t index) const override { return labels_.at(static_cast<size_t>(index)); }

 private:
  std::string name_;
  int64_t vocab_size_, classes_;
  uint64_t tokenizer_hash_;
  std::vector<uint32_t> ids_;
  std::vector<int64_t> starts_;  // of the documents, and the end of the last one
  std::vector<int32_t> labels_;
};

}  // namespace ricci
