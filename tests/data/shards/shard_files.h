// Corpora as shards, for tests.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "core/files/file.h"
#include "data/shards/cache.h"
#include "data/shards/prepare.h"
#include "data/shards/tokens.h"
#include "data/tokenizers/char_tokenizer.h"
#include "tests/data/files.h"

namespace test_data {

// A shard as written by llm.c; announced: the token count in its header, by default the real one.
inline std::string llmc_shard(int32_t magic, int32_t version, const std::vector<int64_t>& ids, size_t width, int32_t announced = -1) {
  std::vector<int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = announced < 0 ? static_cast<int32_t>(ids.size()) : announced;
  std::string bytes(reinterpret_cast<const char*>(header.data()), 1024);
  for (const int64_t id : ids) bytes.append(reinterpret_cast<const char*>(&id), width);
  return bytes;
}

// The documents as shards in a new folder below this one. Returns its path.
inline std::string prepare(const ScratchFolder& folder, const std::string& name, const ricci::Documents& documents,
    const std::shared_ptr<const ricci::Tokenizer>& tokenizer = std::make_shared<ricci::ByteTokenizer>(), int64_t shard_tokens = 1 << 20) {
  ricci::make_folders(folder / name);
  ricci::prepare_shards(documents, tokenizer, folder / name,
      {.shard_tokens = shard_tokens, .source_hash = ricci::hash_inputs(documents, *tokenizer, shard_tokens)});
  return folder / name;
}

// The text as byte tokens in a folder, a document per line, in shards of about this many tokens. Returns the folder.
inline std::string prepared(const ScratchFolder& folder, const std::string& name, const std::string& text, int64_t shard_tokens = 1 << 20) {
  const ricci::TextSource files(folder.write(name + ".txt", text));
  return prepare(folder, name, {.files = files, .options = {.documents = "line"}}, std::make_shared<ricci::ByteTokenizer>(), shard_tokens);
}

inline std::string text_of(const ricci::Tokens& tokens, int64_t first, int64_t end) {
  std::vector<int64_t> ids(static_cast<size_t>(end - first));
  tokens.read(first, ids);
  return ricci::ByteTokenizer().decode(ids);
}

// An unchanged text is identified by its bytes.
inline ricci::TextSource built_in(std::string_view text, const std::string& name = "a") {
  return ricci::TextSource({name}, std::array{ricci::BuiltInText{name, text}});
}

inline ricci::CachedText open_one(const ricci::Documents& source, const std::shared_ptr<const ricci::Tokenizer>& tokenizer,
    const std::string& cache, double train_fraction = 0) {
  return ricci::Cache(cache).tokens(source, tokenizer, train_fraction);
}

inline ricci::Documents plain(const ricci::TextSource& files) { return {.files = files}; }

inline std::shared_ptr<const ricci::Tokenizer> train(const std::string& kind, const ricci::Documents& documents,
    const ricci::TrainingOptions& options = {}, ricci::Eos eos = ricci::Eos::none) {
  std::vector<ricci::Documents> sources{documents};
  return ricci::make_tokenizer({.name = kind, .training = options, .eos = eos}, sources);
}
inline std::shared_ptr<const ricci::Tokenizer> characters_of(const ricci::Documents& documents) { return train("char", documents); }

inline std::shared_ptr<const ricci::Tokenizer> bytes() { return std::make_shared<ricci::ByteTokenizer>(); }
inline std::shared_ptr<const ricci::Tokenizer> characters(const char* all) { return std::make_shared<ricci::CharTokenizer>(all); }

}  // namespace test_data
