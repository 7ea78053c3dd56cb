#include "cuda/device/offset_heap.h"

#include <algorithm>

#include "core/error.h"

namespace ricci {

int64_t OffsetHeap::allocate(int64_t bytes) {
  const int64_t size = std::max(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
  auto best = holes_.end();
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole)
    if (hole->second >= size && (best == holes_.end() || hole->second < best->second)) best = hole;
  int64_t offset = end_;
  if (best == holes_.end()) {
    end_ += size;
    extent_ = std::max(extent_, end_);
  } else {
    offset = best->first;
    if (best->second > size) holes_[offset + size] = best->second - size;
    holes_.erase(offset);
  }
  used_[offset] = size;
  return offset;
}

void OffsetHeap::release(int64_t offset) {
  const auto place = used_.find(offset);
  if (place == used_.end()) fail("offset heap: nothing lies at {}", {offset});
  int64_t first = offset, after = offset + place->second;
  used_.erase(place);
  const auto next = holes_.find(after);
  if (next != holes_.end()) {
    after += next->second;
    holes_.erase(next);
  }
  auto before = holes_.lower_bound(first);
  if (before != holes_.begin() && (--before)->first + before->second == first) {
    first = before->first;
    holes_.erase(before);
  }
  if (after == end_) end_ = first;
  else holes_[first] = after - first;
}

}  // namespace ricci
