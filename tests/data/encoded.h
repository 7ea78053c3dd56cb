// The ids of documents read from files, without shards.
#pragma once
#include <functional>
#include <span>

#include "data/formats/documents.h"
#include "data/tokenizers/tokenizer.h"

namespace test_data {

// Calls use(piece, ids) for all pieces.
inline void for_each_encoded(const ricci::Documents& documents, const ricci::Tokenizer& tokenizer,
    const std::function<void(const ricci::DocumentPiece&, std::span<const int64_t> ids)>& use) {
  ricci::DocumentReader reader(documents, [&](std::string_view known) { return tokenizer.complete_prefix(known); });
  for (ricci::DocumentPiece piece; reader.next(piece);) use(piece, encode(tokenizer, {&piece, 1})[0]);
}

}  // namespace test_data
