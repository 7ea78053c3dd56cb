// Reading token files, and tokenizers that tell what is asked of them.
#pragma once
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokens/token_file.h"
#include "tests/data/files.h"

namespace test_data {

using namespace ricci;

inline std::vector<int64_t> read_all(const TokenFile& tokens) {
  std::vector<int64_t> ids(static_cast<size_t>(tokens.size()));
  tokens.read(0, ids);
  return ids;
}

// The only file in a folder.
inline std::string only_file(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path().string());
  if (files.size() != 1) fail("{} holds {} files", {folder, files.size()});
  return files[0];
}

// Counts the bytes it encodes and the most memory seen on the way.
class Observer final : public Tokenizer {
 public:
  std::string name() const override { return "observer"; }
  int64_t vocab_size() const override { return 256; }
  std::string to_json() const override { return "{}"; }
  size_t complete_prefix(std::string_view text) const override { return text.size(); }
  void append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const override {
    ByteTokenizer().append_ids(piece, offset, ids);
    const std::lock_guard lock(mutex);
    bytes += static_cast<int64_t>(piece.size());
    most = std::max(most, resident_bytes());
  }
  mutable std::mutex mutex;  // several threads encode
  mutable int64_t bytes = 0;
  mutable int64_t most = 0;

 protected:
  void append_text(int64_t, DecodeState&, std::string&) const override {}
};

// Fails, and counts how often it was asked.
class Failing final : public Tokenizer {
 public:
  std::string name() const override { return "failing"; }
  int64_t vocab_size() const override { return 1; }
  std::string to_json() const override { return "{}"; }
  size_t complete_prefix(std::string_view text) const override { return text.size(); }
  void append_ids(std::string_view, int64_t, std::vector<int64_t>&) const override {
    ++attempts;
    fail("no");
  }
  mutable std::atomic<int> attempts = 0;

 protected:
  void append_text(int64_t, DecodeState&, std::string&) const override {}
};

}  // namespace test_data
