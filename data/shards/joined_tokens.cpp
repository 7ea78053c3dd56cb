// Several sources of tokens one after another.
#include <algorithm>

#include "core/error.h"
#include "core/files/checksum.h"
#include "data/shards/tokens.h"

namespace ricci {
namespace {

// Ranges start at these numbers. Returns the index of the range that holds `number`.
size_t range_of(const std::vector<int64_t>& starts, int64_t number) {
  return static_cast<size_t>(std::upper_bound(starts.begin(), starts.end() - 1, number) - starts.begin()) - 1;
}

class JoinedTokens final : public TokenSource {
 public:
  // Errors: no source; different tokenizers, or vocabularies of different sizes.
  explicit JoinedTokens(std::vector<Tokens> sources);

  int64_t size() const override { return first_.back(); }
  int64_t vocab_size() const override { return sources_[0].vocab_size(); }
  uint64_t hash() const override;
  uint64_t tokenizer_hash() const override { return sources_[0].tokenizer_hash(); }
  int64_t first_id() const override { return sources_[0].first_id(); }
  const std::string& name() const override { return name_; }
  void read(int64_t first, std::span<int64_t> ids) const override;
  int64_t shards() const override { return shards_before_.back(); }
  int64_t documents(int64_t shard) const override;
  TokenSpan document(int64_t shard, int64_t index) const override;
  int64_t classes() const override;  // 0 where one of them has no labels
  int64_t label(int64_t shard, int64_t index) const override;

 private:
  std::vector<Tokens> sources_;
  std::vector<int64_t> first_, shards_before_;  // by source, and after the last one
  std::string name_;
};

JoinedTokens::JoinedTokens(std::vector<Tokens> sources) : sources_(std::move(sources)), first_{0}, shards_before_{0} {
  if (sources_.empty()) fail("data: no tokens were given");
  check_same_tokenizer(sources_);
  for (const Tokens& tokens : sources_) {
    first_.push_back(first_.back() + tokens.size());
    shards_before_.push_back(shards_before_.back() + tokens.shards());
  }
  name_ = sources_[0].name();
  if (sources_.size() > 1) name_ += format_message(" and {} more", {sources_.size() - 1});
}

uint64_t JoinedTokens::hash() const {
  std::string all;
  for (const Tokens& tokens : sources_) all += format_message("{} {} ", {tokens.size(), tokens.hash()});
  return hash_bytes(all);
}

void JoinedTokens::read(int64_t first, std::span<int64_t> ids) const {
  check_range(first, ids);
  while (!ids.empty()) {
    const size_t source = range_of(first_, first);
    const auto count = std::min(ids.size(), static_cast<size_t>(first_[source + 1] - first));
    sources_[source].read(first - first_[source], ids.first(count));
    ids = ids.subspan(count);
    first += static_cast<int64_t>(count);
  }
}

int64_t JoinedTokens::documents(int64_t shard) const {
  const size_t source = range_of(shards_before_, shard);
  return sources_[source].documents(shard - shards_before_[source]);
}

TokenSpan JoinedTokens::document(int64_t shard, int64_t index) const {
  const size_t source = range_of(shards_before_, shard);
  const auto [begin, end] = sources_[source].document(shard - shards_before_[source], index);
  return {first_[source] + begin, first_[source] + end};
}

int64_t JoinedTokens::classes() const {
  int64_t most = 0;
  for (const Tokens& tokens : sources_) {
    if (tokens.classes() == 0) return 0;
    most = std::max(most, tokens.classes());
  }
  return most;
}

int64_t JoinedTokens::label(int64_t shard, int64_t index) const {
  const size_t source = range_of(shards_before_, shard);
  return sources_[source].label(shard - shards_before_[source], index);
}

}  // namespace

Tokens join(std::vector<Tokens> sources) {
  if (sources.size() == 1) return sources[0];
  return JoinedTokens(std::move(sources));
}

}  // namespace ricci
