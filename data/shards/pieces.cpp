#include "data/shards/pieces.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/cpu/prefetch.h"

namespace ricci {
namespace {

// A batch ends with whichever is reached first. Its ids need eight bytes each, up to one id for a byte.
constexpr size_t kMinBatchBytes = 512 << 10, kBytesPerThread = 64 << 10, kBatchPieces = 16384;
constexpr size_t kBatchesAhead = 2;

struct PieceBatch {
  std::vector<DocumentPiece> pieces;
  int64_t bytes_of_files = 0;
};

std::optional<PieceBatch> read_batch(PieceReader& reader, size_t batch_bytes) {
  PieceBatch batch;
  DocumentPiece piece;
  for (size_t bytes = 0; bytes < batch_bytes && batch.pieces.size() < kBatchPieces && reader.next(piece);
       bytes += batch.pieces.back().text.size())
    batch.pieces.push_back(std::move(piece));
  batch.bytes_of_files = reader.bytes_of_files();
  if (batch.pieces.empty()) return {};
  return batch;
}

}  // namespace

bool TextReader::next(DocumentPiece& piece) {
  std::optional<TextPieces::Piece> found = pieces_.next();
  if (!found && is_cut_) {
    pieces_.read_rest();
    text_ = text_.as("validation");
    is_cut_ = false;
    starts_ = true;
    found = pieces_.next();
  }
  if (!found) return false;
  piece.text = found->text;
  piece.starts = std::exchange(starts_, false);
  piece.ends = found->ends;
  piece.place = text_.name();
  piece.first_byte = found->offset;
  return true;
}

void for_each_encoded(PieceReader& reader, const Tokenizer& tokenizer,
    const std::function<void(const DocumentPiece&, bool, std::span<const int64_t>)>& use, const std::function<void(int64_t)>& after) {
  const size_t batch_bytes = std::max(kMinBatchBytes, kBytesPerThread * static_cast<size_t>(thread_count()));
  Prefetch<PieceBatch> batches([&] { return read_batch(reader, batch_bytes); }, kBatchesAhead);
  while (const std::optional<PieceBatch> batch = batches.next()) {
    std::vector<Passage> passages;
    for (const DocumentPiece& piece : batch->pieces)
      passages.push_back({piece.text, piece.first_byte, piece.ends, piece.place, piece.starts});
    for (const EncodedPart& part : encode(tokenizer, passages)) use(batch->pieces[part.passage], part.is_first, part.ids);
    if (after) after(batch->bytes_of_files);
  }
}

}  // namespace ricci
