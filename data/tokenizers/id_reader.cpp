#include "data/tokenizers/id_reader.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {
namespace {

class PackedIds final : public Tokenizer {
 public:
  explicit PackedIds(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  std::string name() const override { return tokenizer_->name(); }
  int64_t vocab_size() const override { return tokenizer_->vocab_size(); }
  Json model_json() const override { return tokenizer_->json(); }

 protected:
  size_t model_prefix(std::string_view bytes) const override { return bytes.size() / 2 * 2; }
  void append_model_ids(std::string_view bytes, int64_t offset, bool, std::vector<int64_t>& ids) const override {
    if (const std::string other = offset == 0 ? other_than_ids(bytes, vocab_size()) : ""; !other.empty()) fail("looks like {}", {other});
    if (bytes.size() % 2) fail("has {} bytes, expected two for each id", {offset + std::ssize(bytes)});
    for (size_t i = 0; i < bytes.size(); i += 2) {
      ids.push_back(static_cast<unsigned char>(bytes[i]) | static_cast<unsigned char>(bytes[i + 1]) << 8);
      if (ids.back() >= vocab_size())
        fail("id {} at byte {} is outside the vocabulary of {}", {ids.back(), offset + static_cast<int64_t>(i), vocab_size()});
    }
  }
  void append_text(int64_t id, DecodeState&, std::string& bytes) const override {
    bytes.append({static_cast<char>(id & 0xff), static_cast<char>(id >> 8)});
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_id_reader(std::shared_ptr<const Tokenizer> tokenizer) {
  return std::make_shared<PackedIds>(std::move(tokenizer));
}

std::string other_than_ids(std::string_view start, int64_t vocab_size) {
  const std::string conversion = ".astype('<u2').tofile(NEW) converts it for ricci prepare --format u16";
  if (start.starts_with("\x93NUMPY")) return "a NumPy array; numpy.load(FILE)" + conversion;
  if (start.starts_with("PK\3\4")) return "a zip archive, such as .npz; numpy.load(FILE)['NAME']" + conversion;
  const bool is_shard = start.starts_with("\x88\xd8\x34\1") || start.starts_with("\xa1\xd9\x34\1");
  if (is_shard) return "an llm.c shard; ricci train reads it directly";
  start = start.substr(0, 2048);
  if (start.size() < 64) return "";
  bool has[4] = {};  // has[i]: in at least one group of four adjacent ids the i-th is nonzero, i = 0 ... 3
  int highest = 0, highest_swapped = 0;
  for (size_t i = 0; i + 1 < start.size(); i += 2) {
    const int low = static_cast<unsigned char>(start[i]), high = static_cast<unsigned char>(start[i + 1]);
    has[i / 2 % 4] |= low + high > 0;
    highest = std::max(highest, low | high << 8);
    highest_swapped = std::max(highest_swapped, high | low << 8);
  }
  const bool in_even = has[0] || has[2], in_odd = has[1] || has[3];
  if (in_even != in_odd) {
    const int bytes = (in_even ? has[2] : has[1]) ? 4 : 8;
    return format_message(
        "numbers of {} bytes; numpy.fromfile(FILE, '{}i{}').astype('<u2').tofile(NEW) converts them for ricci prepare --format u16",
        {bytes, in_even ? '<' : '>', bytes});
  }
  if (highest >= vocab_size && highest_swapped < vocab_size) return "ids with the higher byte first; dd conv=swab swaps the bytes";
  const bool is_text = std::all_of(start.begin(), start.end(), [](char c) { return (c >= ' ' && c <= '~') || (c >= '\t' && c <= '\r'); });
  return is_text ? "a text; it needs no --format u16" : "";
}

}  // namespace ricci
