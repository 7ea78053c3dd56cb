// Ids that a test makes, as a source of tokens.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "data/shards/tokens.h"

namespace test_data {

class Ids final : public ricci::TokenSource {
 public:
  Ids(std::vector<int64_t> ids, int64_t vocab_size) : ids_(std::move(ids)), vocab_size_(vocab_size) {}
  int64_t size() const override { return static_cast<int64_t>(ids_.size()); }
  int64_t vocab_size() const override { return vocab_size_; }
  uint64_t hash() const override { return 0; }
  uint64_t tokenizer_hash() const override { return 0; }
  const std::string& name() const override { return name_; }
  void read(int64_t first, std::span<int64_t> ids) const override {
    check_range(first, ids);
    std::copy_n(ids_.begin() + first, ids.size(), ids.begin());
  }

 private:
  std::vector<int64_t> ids_;
  int64_t vocab_size_;
  std::string name_ = "ids";
};

inline std::vector<int64_t> read_all(const ricci::Tokens& tokens) {
  std::vector<int64_t> ids(static_cast<size_t>(tokens.size()));
  tokens.read(0, ids);
  return ids;
}

}  // namespace test_data
