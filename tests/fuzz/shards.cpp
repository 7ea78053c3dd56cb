// Fuzzes shards: as they are, and as the header and body of a prepared shard whose hashes are right, as somebody may write them.
#include <cstring>

#include "core/files/checksum.h"
#include "data/shards/shard.h"
#include "data/shards/tokens.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "tests/fuzz/input.h"

using namespace ricci;

namespace {

void read(const std::string& path) {
  const Tokens tokens = Tokens::open(path, ByteTokenizer());
  int64_t size = 0;
  for (int64_t shard = 0; shard < tokens.shards(); ++shard) {
    for (int64_t i = 0; i < tokens.documents(shard); ++i) {
      const TokenSpan document = tokens.document(shard, i);
      fuzz::require(document.first == size && document.size() > 0, "documents follow each other");
      size = document.end;
      fuzz::require(tokens.label(shard, i) < std::max<int64_t>(tokens.classes(), 1), "a label is one of the classes");
    }
  }
  fuzz::require(size == tokens.size(), "all tokens are in documents");
  std::vector<int64_t> ids(static_cast<size_t>(size));
  tokens.read(0, ids);
  for (const int64_t id : ids) fuzz::require(id >= 0 && id < tokens.vocab_size(), "an id is in the vocabulary");
  std::vector<uint8_t> counts(ids.size());
  tokens.read_counts(0, counts);
  for (const uint8_t counting : counts) fuzz::require(counting == 1 || (counting == 0 && tokens.has_mask()), "a token counts or does not");
}

// The same bytes with what a writer would have put into the header, so that what stands behind it is read.
std::string sound(std::string bytes) {
  ShardHeader header;
  const ShardHeader right;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  std::memcpy(header.magic, right.magic, sizeof right.magic);
  header.version = header.version % 2 ? right.version : 2;  // without a mask, or with one
  header.bytes_per_token = header.bytes_per_token % 2 ? 2 : 4;
  header.vocab_size = 256, header.tokenizer_hash = ByteTokenizer().hash(), header.number = 0, header.is_last = 1;
  header.tokens %= 64, header.documents %= 64, header.classes %= 8;
  bytes.resize(sizeof header);
  return bytes.replace(0, sizeof header, reinterpret_cast<const char*>(&header), sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::InputFile input;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  fuzz::attempt([&] { read(input.write(bytes)); });
  if (size < sizeof(ShardHeader)) return 0;
  std::string crafted = sound(bytes);
  ShardHeader header;
  std::memcpy(static_cast<void*>(&header), crafted.data(), sizeof header);
  std::string body = bytes.substr(sizeof header);
  if (header.file_bytes() >= static_cast<int64_t>(sizeof header))
    body.resize(static_cast<size_t>(header.file_bytes()) - sizeof header, '\0');
  header.body_hash = hash_of_blocks(body);
  header.own_hash = header.hash();
  fuzz::attempt([&] { read(input.write(std::string(reinterpret_cast<const char*>(&header), sizeof header) + body)); });
  return 0;
}
