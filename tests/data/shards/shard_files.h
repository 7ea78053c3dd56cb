// Corpora as shards, for tests.
#pragma once
#include <string>
#include <vector>

#include "core/files/file.h"
#include "data/shards/prepare.h"
#include "data/shards/store.h"
#include "data/shards/tokens.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "tests/data/files.h"

namespace test_data {

inline ricci::StoredSource open_source(
    const ricci::StoreSource& source, const std::shared_ptr<const ricci::Tokenizer>& tokenizer, const std::string& cache_folder) {
  return ricci::open_sources({source}, tokenizer, {}, cache_folder)[0];
}

// A shard as llm.c writes it; announced: the number of tokens that its header tells, those that it has if not given.
inline std::string llmc_shard(int32_t magic, int32_t version, const std::vector<int64_t>& ids, size_t width, int32_t announced = -1) {
  std::vector<int32_t> header(256, 0);
  header[0] = magic, header[1] = version, header[2] = announced < 0 ? static_cast<int32_t>(ids.size()) : announced;
  std::string bytes(reinterpret_cast<const char*>(header.data()), 1024);
  for (const int64_t id : ids) bytes.append(reinterpret_cast<const char*>(&id), width);
  return bytes;
}

// The text as byte tokens in a folder, a document per line, in shards of about so many tokens. Returns the folder.
inline std::string prepared(const ScratchFolder& folder, const std::string& name, const std::string& text, int64_t shard_tokens = 1 << 20) {
  using namespace ricci;
  make_folders(folder / name);
  const TextSource files = TextSource(folder.write(name + ".txt", text));
  prepare_shards(files, ByteTokenizer(), Folder(folder / name), {.documents = {.documents = "line"}, .shard_tokens = shard_tokens});
  return folder / name;
}

inline std::string text_of(const ricci::Tokens& tokens, int64_t first, int64_t end) {
  std::vector<int64_t> ids(static_cast<size_t>(end - first));
  tokens.read(first, ids);
  return ricci::ByteTokenizer().decode(ids);
}

}  // namespace test_data
