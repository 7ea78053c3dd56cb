#include "models/training/parted_tensor.h"

#include <cstring>

#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

int64_t length(const Range& range) { return range.hi - range.lo; }

// Elements of a tensor on the CPU, as bytes.
char* bytes_at(const Tensor& t, int64_t element) { return static_cast<char*>(t.raw()) + element * size_of(t.dtype()); }

void copy_elements(const Tensor& target, int64_t target_first, const Tensor& source, int64_t source_first, int64_t count) {
  if (count > 0)
    std::memcpy(bytes_at(target, target_first), bytes_at(source, source_first), static_cast<size_t>(count * size_of(target.dtype())));
}

// Ranges of a tensor one after another; empty where there are none.
Tensor packed_like(const PartedTensor& tensor, const std::vector<Range>& ranges) {
  int64_t count = 0;
  for (const Range& range : ranges) count += length(range);
  return count ? Tensor({count}, tensor.dtype) : Tensor();
}

void unpack(const Tensor& whole, const std::vector<Range>& ranges, const Tensor& packed) {
  int64_t offset = 0;
  for (const Range& range : ranges) {
    copy_elements(whole, range.lo, packed, offset, length(range));
    offset += length(range);
  }
}

}  // namespace

Tensor gathered(Ranks& ranks, const PartedTensor& tensor) {
  const bool is_first = ranks.rank() == 0;
  if (tensor.of_ranks.empty()) return is_first ? to(tensor.mine[0].second.reshaped(tensor.shape), Device::cpu) : Tensor();
  const auto count = static_cast<size_t>(ranks.count()), me = static_cast<size_t>(ranks.rank());
  const Tensor mine = packed_like(tensor, tensor.of_ranks[me]), whole = is_first ? Tensor(tensor.shape, tensor.dtype) : Tensor();
  int64_t offset = 0;
  for (const auto& [range, part] : tensor.mine) {
    copy_elements(mine, offset, to(part, Device::cpu), 0, length(range));
    offset += length(range);
  }
  std::vector<Ranks::Tensors> sent(count), received(count);
  if (!is_first && mine) sent[0] = {mine};
  for (size_t r = 0; is_first && r < count; ++r)
    if (const Tensor theirs = r == me ? mine : packed_like(tensor, tensor.of_ranks[r])) received[r] = {theirs};
  ranks.all_to_all(sent, received);
  ranks.wait_for_first();
  if (!is_first) return {};
  for (size_t r = 0; r < count; ++r)
    if (!received[r].empty()) unpack(whole, tensor.of_ranks[r], received[r][0]);
  return whole;
}

Tensor scatter(Ranks& ranks, const PartedTensor& tensor, const Tensor& whole) {
  const Tensor all = ranks.rank() == 0 ? whole : Tensor(tensor.shape, tensor.dtype);
  ranks.from_first(all);
  ranks.wait_for_first();
  const Tensor elements = all.reshaped({all.size()});
  for (const auto& [range, part] : tensor.mine) copy(part.reshaped({part.size()}), elements.rows(range.lo, length(range)));
  return all;
}

TensorSource source_of(const std::string& name, const Tensor& tensor) {
  return {name, tensor.shape(), tensor.dtype(), [tensor] { return to(tensor, Device::cpu); }};
}

TensorSource source_of(Ranks& ranks, const PartedTensor& tensor) {
  return {tensor.name, tensor.shape, tensor.dtype, [&ranks, tensor] { return gathered(ranks, tensor); }};
}

void hand_over(std::vector<TensorSource> tensors) {
  sort_in_file_order(tensors);
  for (const TensorSource& tensor : tensors) tensor.load();
}

}  // namespace ricci
