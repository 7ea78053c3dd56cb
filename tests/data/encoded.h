// The ids of documents as they are read from files, without shards.
#pragma once
#include <functional>
#include <span>

#include "data/formats/documents.h"
#include "data/tokenizers/tokenizer.h"

namespace test_data {

// Calls use(piece, is_first, ids) for the parts of all pieces; is_first: the part is the first of its piece.
inline void for_each_encoded(const ricci::Documents& documents, const ricci::Tokenizer& tokenizer,
    const std::function<void(const ricci::DocumentPiece&, bool is_first, std::span<const int64_t> ids)>& use) {
  ricci::DocumentReader reader(documents, [&](std::string_view known) { return tokenizer.complete_prefix(known); });
  for (ricci::DocumentPiece piece; reader.next(piece);)
    for (const ricci::EncodedPart& part : encode(tokenizer, {&piece, 1})) use(piece, part.is_first, part.ids);
}

}  // namespace test_data
