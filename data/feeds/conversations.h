// Conversations for a training and its evaluation. They are documents of shards whose ids a ChatTokenizer made: V and more is a token that
// counts (data/tokenizers/chat.h).
#pragma once
#include <span>
#include <string>
#include <vector>

#include "data/feeds/feed.h"
#include "data/shards/tokens.h"

namespace ricci {

// The conversations that a model with this context learns something from: only the ones that predict a token that counts, each without
// the tokens that are then neither read nor predicted. Spans do not cover the source; they take 16 bytes each.
class Conversations final : public TokenSource {
 public:
  // Errors: no conversation is left; context below 1.
  Conversations(Tokens tokens, int64_t context);

  int64_t count() const { return static_cast<int64_t>(spans_.size()); }
  int64_t cut() const { return cut_; }            // conversations that lost tokens
  int64_t left_out() const { return left_out_; }  // conversations without a token that counts

  int64_t size() const override { return tokens_.size(); }
  int64_t vocab_size() const override { return tokens_.vocab_size(); }
  uint64_t hash() const override { return tokens_.hash(); }
  uint64_t tokenizer_hash() const override { return tokens_.tokenizer_hash(); }
  const std::string& name() const override { return tokens_.name(); }
  void read(int64_t first, std::span<int64_t> ids) const override { tokens_.read(first, ids); }
  int64_t documents(int64_t) const override { return count(); }
  TokenSpan document(int64_t, int64_t index) const override { return spans_[static_cast<size_t>(index)]; }

 private:
  Tokens tokens_;
  std::vector<TokenSpan> spans_;
  int64_t cut_ = 0, left_out_ = 0;
};

struct ConversationCounts {
  int64_t all = 0;  // that are kept
  int64_t cut = 0, left_out = 0;
};

// Keeps the conversations of the training that have something to learn from. The counts include both texts.
ConversationCounts keep_conversations(std::vector<Tokens>& train, const Tokens& validation, int64_t context);

// One row per conversation. Targets that do not count, and those after the end, are kNoTarget. The rows are as long as the longest one,
// or `width` where that is more. vocab: V.
Batch conversation_batch(std::span<const LabelledIds> conversations, int64_t vocab, int64_t width = 0);

// Evaluation: every conversation once, in their order.
class ConversationBatches {
 public:
  // Errors: as for Conversations; batch below 1.
  ConversationBatches(const Tokens& tokens, int64_t batch, int64_t context);
  int64_t batches() const { return (conversations_.count() + batch_ - 1) / batch_; }
  int64_t batch() const { return batch_; }  // conversations in each batch but the last: as asked, but no more than there are
  Batch at(int64_t index) const;

 private:
  Conversations conversations_;
  int64_t batch_;
};

}  // namespace ricci
