// What a source has by itself: blocks in the place of documents.
#include "data/tokens/tokens.h"

#include <algorithm>

#include "core/error.h"

namespace ricci {

int64_t TokenSource::documents(int64_t) const { return (size() + kBlock - 1) / kBlock; }

TokenSpan TokenSource::document(int64_t, int64_t index) const { return {index * kBlock, std::min(size(), (index + 1) * kBlock)}; }

int64_t TokenSource::label(int64_t, int64_t) const { return -1; }

void TokenSource::check_range(int64_t first, std::span<const int64_t> ids) const {
  const auto count = static_cast<int64_t>(ids.size());
  if (first < 0 || count > size() || first > size() - count)
    fail("{}: tokens {} to {} are not in a text of {} tokens", {name(), first, first + count, size()});
}

}  // namespace ricci
