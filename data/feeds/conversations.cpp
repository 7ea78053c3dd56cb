#include "data/feeds/conversations.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace ricci {

Conversations::Conversations(Tokens tokens, int64_t context) : tokens_(std::move(tokens)) {
  if (context < 1) fail("conversations: context {}, expected 1 or more", {context});
  const int64_t vocab = vocab_size() / 2;
  for (int64_t shard = 0; shard < tokens_.shards(); ++shard)
    for (int64_t i = 0; i < tokens_.documents(shard); ++i) {
      TokenSpan span = tokens_.document(shard, i);
      const bool is_long = span.size() > context + 1;
      if (is_long) span.end = span.first + context + 1;
      std::vector<int64_t> ids(static_cast<size_t>(span.size()));
      tokens_.read(span.first, ids);
      const bool counts = std::any_of(ids.begin() + 1, ids.end(), [&](int64_t id) { return id >= vocab; });
      cut_ += counts && is_long;
      left_out_ += !counts;
      if (counts) spans_.push_back(span);
    }
  if (spans_.empty()) fail("{}: no answer of its {} conversations begins within a context of {} tokens", {name(), left_out_, context});
}

ConversationCounts keep_conversations(std::vector<Tokens>& train, const Tokens& validation, int64_t context) {
  ConversationCounts counts;
  const auto add = [&](const Conversations& kept) {
    counts.all += kept.count();
    counts.cut += kept.cut();
    counts.left_out += kept.left_out();
  };
  for (Tokens& each : train) {
    const Conversations kept(each, context);
    add(kept);
    each = kept;
  }
  add(Conversations(validation, context));
  return counts;
}

Batch conversation_batch(std::span<const LabelledIds> conversations, int64_t vocab, int64_t width) {
  for (const LabelledIds& each : conversations) width = std::max(width, static_cast<int64_t>(each.ids.size()) - 1);
  const auto rows = static_cast<int64_t>(conversations.size());
  const auto size = static_cast<size_t>(rows * width);
  Batch batch{rows, width, std::vector<int64_t>(size, 0), std::vector<int64_t>(size, kNoTarget)};
  for (size_t b = 0; b < conversations.size(); ++b) {
    const std::vector<int64_t>& ids = conversations[b].ids;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const size_t element = b * static_cast<size_t>(width) + i;
      batch.ids_bc[element] = ids[i] % vocab;
      if (ids[i + 1] < vocab) continue;
      batch.targets_bc[element] = ids[i + 1] - vocab;
      ++batch.scored;
    }
  }
  return batch;
}

ConversationBatches::ConversationBatches(const Tokens& tokens, int64_t batch, int64_t context)
    : conversations_(tokens, context), batch_(std::min(batch, conversations_.count())) {
  if (batch < 1) fail("batches of conversations: batch {}, expected 1 or more", {batch});
}

Batch ConversationBatches::at(int64_t index) const {
  if (index < 0 || index >= batches()) fail("batches of conversations: no batch {} among {}", {index, batches()});
  std::vector<LabelledIds> rows;
  for (int64_t i = index * batch_; i < std::min((index + 1) * batch_, conversations_.count()); ++i) {
    const TokenSpan span = conversations_.document(0, i);
    rows.push_back(read_document(conversations_, span, -1, span.size()));
  }
  return conversation_batch(rows, conversations_.vocab_size() / 2);
}

}  // namespace ricci
