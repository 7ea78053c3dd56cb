#include "data/feeds/sorter.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/files/checksum.h"
#include "core/random.h"

namespace ricci {

namespace {

constexpr int64_t kMinSequences = 1024;  // so that there are some in both subsets

const char* name_of(SortingRows::Subset subset) { return subset == SortingRows::Subset::training ? "training" : "held out"; }

bool is_held_out(const std::vector<int64_t>& sequence) {
  std::string bytes;
  for (const int64_t symbol : sequence) bytes += static_cast<char>(symbol);
  return Philox{0, hash_bytes(bytes)}.bits(0) % 8 == 0;  // the low bits of the hash alone depend on few symbols
}

}  // namespace

SortingRows::SortingRows(int64_t symbols, int64_t length, Subset subset, int64_t rows)
    : symbols_(symbols), length_(length), rows_(rows), subset_(subset), name_(format_message("sorter ({})", {name_of(subset)})) {
  if (symbols < 2 || symbols > 26) fail("sorter: {} symbols, expected 2 to 26", {symbols});
  if (length < 3 || length > 4096) fail("sorter: sequences of {} symbols, expected 3 to 4096", {length});
  int64_t sequences = 1;
  for (int64_t i = 0; i < length && sequences < kMinSequences; ++i) sequences *= symbols;
  if (sequences < kMinSequences)
    fail("sorter: {} symbols make {} sequences of {}, expected {} or more", {symbols, sequences, length, kMinSequences});
  if (rows < 1) fail("sorter: {} rows, expected 1 or more", {rows});
}

uint64_t SortingRows::hash() const { return hash_bytes(format_message("{} {} {} {}", {name_, symbols_, length_, rows_})); }

// Sequences are drawn for the row until one belongs to the subset.
std::vector<int64_t> SortingRows::row(int64_t number) const {
  std::vector<int64_t> ids(static_cast<size_t>(length_));
  for (int64_t attempt = 0;; ++attempt) {
    const Philox random{0, hash_bytes(format_message("{} {} {}", {name_, number, attempt}))};
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(index_below(static_cast<uint64_t>(symbols_), random, i));
    if (is_held_out(ids) == (subset_ == Subset::held_out)) break;
  }
  ids.insert(ids.end(), ids.begin(), ids.end());
  std::sort(ids.begin() + length_, ids.end());
  return ids;
}

void SortingRows::read(int64_t first, std::span<int64_t> ids) const {
  check_range(first, ids);
  for (size_t done = 0; done < ids.size();) {
    const int64_t token = first + static_cast<int64_t>(done), in_row = token % (2 * length_);
    const std::vector<int64_t> whole = row(token / (2 * length_));
    const size_t count = std::min(ids.size() - done, whole.size() - static_cast<size_t>(in_row));
    std::copy_n(whole.begin() + in_row, count, ids.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
}

SortingBatches::SortingBatches(Tokens tokens, int64_t length, int64_t batch, uint64_t seed)
    : tokens_(std::move(tokens)), length_(length), batch_(batch), seed_(seed) {
  if (length < 1 || batch < 1) fail("sorter: sequences of {} symbols and batch {}, expected 1 or more of each", {length, batch});
  if (length > tokens_.size() || tokens_.size() % (2 * length) != 0)
    fail("sorter: {} has {} tokens, which are no rows of two times {}", {tokens_.name(), tokens_.size(), length});
}

template <class Row> Batch SortingBatches::batch_of(int64_t rows, const Row& row) const {
  const auto size = static_cast<size_t>(rows * context());
  Batch batch{rows, context(), std::vector<int64_t>(size), std::vector<int64_t>(size, kNoTarget), rows * length_};
  std::vector<int64_t> ids(static_cast<size_t>(2 * length_));
  for (int64_t b = 0; b < rows; ++b) {
    tokens_.read(row(b) * 2 * length_, ids);
    std::copy(ids.begin(), ids.end() - 1, batch.ids_bc.begin() + b * context());
    std::copy(ids.begin() + length_, ids.end(), batch.targets_bc.begin() + b * context() + length_ - 1);
  }
  return batch;
}

Batch SortingBatches::at(int64_t step, int64_t micro_batch) const {
  if (step < 0 || micro_batch < 0) fail("sorter: step {} and micro-batch {}, expected 0 or more of each", {step, micro_batch});
  const Philox random{seed_, hash_bytes("sorter")};
  return batch_of(batch_, [&](int64_t b) {
    const uint64_t draw = static_cast<uint64_t>(step) << 32 | static_cast<uint64_t>(micro_batch * batch_ + b);
    return static_cast<int64_t>(index_below(static_cast<uint64_t>(rows()), random, draw));
  });
}

Batch SortingBatches::at(int64_t index) const {
  if (index < 0 || index >= batches()) fail("sorter: batch {}, expected 0 to {}", {index, batches() - 1});
  return batch_of(std::min(batch(), rows() - index * batch()), [&](int64_t b) { return index * batch() + b; });
}

}  // namespace ricci
