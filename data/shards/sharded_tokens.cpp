#include "data/shards/sharded_tokens.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/files/checksum.h"
#include "data/shards/shard_writer.h"

namespace ricci {

namespace fs = std::filesystem;

// What is read of one shard.
struct ShardPart {
  size_t number;           // in the maps
  TokenSpan tokens;        // of the shard
  int64_t first_document;  // of the shard
  int64_t documents;
  int64_t first;  // token of the source
};

struct ShardedTokens::Contents {
  std::shared_ptr<ShardMaps> maps;  // shared by the parts of a corpus
  std::vector<ShardPart> parts = {};
  int64_t vocab_size = 0, classes = 0, tokens = 0;
  uint64_t hash = 0, tokenizer_hash = 0;
  std::string name = {};

  const ShardPart& part_of(int64_t token) const {
    return *(std::upper_bound(parts.begin(), parts.end(), token, [](int64_t t, const ShardPart& p) { return t < p.first; }) - 1);
  }
  const ShardLayout& layout(const ShardPart& part) const { return maps->shards()[part.number].layout; }
  // Where a document starts in its shard; the number behind the last one stands for the end of the shard.
  int64_t start(const ShardPart& part, int64_t document) const {
    const ShardLayout& shard = layout(part);
    if (!shard.is_prepared) return std::min(shard.tokens, document * kBlock);
    return document == shard.header.documents ? shard.tokens
                                              : maps->get(part.number, shard.header.index_offset() + document * 8, 8)->start(document);
  }
};

namespace {

int64_t documents_of(const ShardLayout& layout) {
  return layout.is_prepared ? layout.header.documents : (layout.tokens + TokenSource::kBlock - 1) / TokenSource::kBlock;
}

uint64_t hash_of_whole(const std::string& path) {
  const OpenFile file(path);
  return hash_of_file(file, 0, file.size());
}

std::string tokenizer_path(const std::string& path) { return path + "/tokenizer.json"; }

// The prepared shards of a folder, or where it has none all files but hidden ones, or one file.
std::vector<std::string> shard_paths(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return {path};
  const std::vector<std::string> names = Folder(path).names();
  const bool prepared = std::any_of(names.begin(), names.end(), is_shard_name);
  std::vector<std::string> paths;
  for (const std::string& name : names)
    if (prepared ? is_shard_name(name) : !name.starts_with('.')) paths.push_back(path + "/" + name);
  return paths;
}

bool is_shard_file(const std::string& path) {
  try {
    return is_shard(OpenFile(path));
  } catch (const Error&) {  // whoever reads it as a text tells why it cannot be read
    return false;
  }
}

std::string file_name(const std::string& path) { return fs::path(path).filename().string(); }

// Error: the shards are not those of one whole corpus, made by this tokenizer.
void check_corpus(const std::string& path, const std::vector<ShardMaps::Shard>& shards, const Tokenizer& tokenizer) {
  const ShardMaps::Shard& first = shards[0];
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto& [place, layout, file] = shards[i];
    const ShardHeader& header = layout.header;
    if (layout.is_prepared != first.layout.is_prepared || layout.bytes_per_token != first.layout.bytes_per_token)
      fail("{}: a shard of another format than {}", {place, first.path});
    if (!layout.is_prepared) continue;
    if (header.tokenizer_hash != first.layout.header.tokenizer_hash)
      fail("{}: the shard was made by another tokenizer than {}", {place, first.path});
    if (header.source_hash != first.layout.header.source_hash) fail("{}: a shard of another corpus than {}", {place, first.path});
    if (header.number != static_cast<int64_t>(i))
      fail("{}: shard {} of the corpus is missing", {path, shard_name(static_cast<int64_t>(i))});
  }
  if (!first.layout.is_prepared) return;
  if (!shards.back().layout.header.is_last)
    fail("{}: the last shard is missing: ricci-prepare has not ended there, and goes on when it is called again", {path});
  if (first.layout.header.tokenizer_hash != tokenizer.hash() || first.layout.header.vocab_size != tokenizer.vocab_size())
    fail("{}: the shards were made by another tokenizer, of {} tokens, than the {} tokenizer of {} tokens",
        {path, first.layout.header.vocab_size, tokenizer.name(), tokenizer.vocab_size()});
}

}  // namespace

bool names_shards(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return fs::is_regular_file(path, ignored) && is_shard_file(path);
  std::vector<std::string> paths;
  try {
    paths = shard_paths(path);
  } catch (const Error&) {  // as above
    return false;
  }
  if (!paths.empty() && is_shard_name(file_name(paths[0]))) return true;
  const auto shard = std::find_if(paths.begin(), paths.end(), is_shard_file),
             other = std::find_if_not(paths.begin(), paths.end(), is_shard_file);
  if (shard != paths.end() && other != paths.end())
    fail("{}: {} is a shard and {} is none; give shards a folder of their own", {path, file_name(*shard), file_name(*other)});
  return shard != paths.end();
}

bool has_tokenizer(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && fs::exists(path + "/" + shard_name(0), ignored);
}

std::shared_ptr<const Tokenizer> tokenizer_of_shards(const std::string& path) {
  try {
    return tokenizer_from_json(read_text(tokenizer_path(path), kMaxTokenizer));
  } catch (const Error& error) {
    fail("{}: {}", {path, error.what()});
  }
}

ShardedTokens ShardedTokens::open(const std::string& path, const Tokenizer& tokenizer) {
  std::vector<ShardMaps::Shard> shards;
  for (const std::string& each : shard_paths(path)) shards.push_back({each, read_shard_header(OpenFile(each))});
  return of(path, std::move(shards), tokenizer);
}

ShardedTokens ShardedTokens::hold(const std::string& path, const Tokenizer& tokenizer) {
  std::vector<ShardMaps::Shard> shards;
  for (const std::string& each : shard_paths(path)) {
    const auto file = std::make_shared<const OpenFile>(each);
    shards.push_back({each, read_shard_header(*file), file});
    check_shard_body(*file, shards.back().layout.header);
  }
  return of(path, std::move(shards), tokenizer);
}

ShardedTokens ShardedTokens::of(const std::string& path, std::vector<ShardMaps::Shard> shards, const Tokenizer& tokenizer) {
  if (shards.empty()) fail("{}: no shards are there", {path});
  // Names of five digits and of six are not in the order of their numbers. The shards of llm.c have none, and stay as they are.
  std::stable_sort(
      shards.begin(), shards.end(), [](const auto& a, const auto& b) { return a.layout.header.number < b.layout.header.number; });
  check_corpus(path, shards, tokenizer);
  std::string hashes;
  for (const auto& [place, layout, file] : shards)
    hashes += format_message("{} ", {layout.is_prepared ? layout.header.body_hash : hash_of_whole(place)});
  Contents contents{.maps = std::make_shared<ShardMaps>(std::move(shards))};
  contents.vocab_size = tokenizer.vocab_size();
  contents.tokenizer_hash = contents.maps->shards()[0].layout.header.tokenizer_hash;
  contents.classes = contents.maps->shards()[0].layout.header.classes;
  contents.hash = hash_bytes(hashes);
  contents.name = fs::path(path).has_filename() ? fs::path(path).filename().string() : fs::path(path).parent_path().filename().string();
  for (size_t i = 0; i < contents.maps->shards().size(); ++i) {
    const ShardLayout& layout = contents.maps->shards()[i].layout;
    if (layout.tokens == 0) continue;  // the last shard, when the one before was just full
    contents.parts.push_back({i, {0, layout.tokens}, 0, documents_of(layout), contents.tokens});
    contents.tokens += layout.tokens;
  }
  return ShardedTokens(std::make_shared<const Contents>(std::move(contents)));
}

// The documents [first, end), counted over all shards.
ShardedTokens ShardedTokens::part(const char* label, int64_t first, int64_t end) const {
  Contents contents = *contents_;
  contents.parts.clear();
  contents.tokens = 0;
  contents.name += format_message(" ({})", {label});
  contents.hash = hash_bytes(format_message("{} {}", {first, end}), contents_->hash);
  int64_t before = 0;
  for (const ShardPart& whole : contents_->parts) {
    const int64_t from = std::max<int64_t>(first - before, 0), to = std::min(end - before, whole.documents);
    before += whole.documents;
    if (from >= to) continue;
    const TokenSpan tokens{contents.start(whole, whole.first_document + from), contents.start(whole, whole.first_document + to)};
    contents.parts.push_back({whole.number, tokens, whole.first_document + from, to - from, contents.tokens});
    contents.tokens += tokens.size();
  }
  return ShardedTokens(std::make_shared<const Contents>(std::move(contents)));
}

std::pair<ShardedTokens, ShardedTokens> ShardedTokens::split(double fraction) const {
  int64_t documents = 0;
  for (const ShardPart& each : contents_->parts) documents += each.documents;
  const auto train = static_cast<int64_t>(std::floor(static_cast<double>(documents) * fraction));
  if (train < 1 || train >= documents) fail("{}: has {} documents, too few for a training fraction of {}", {name(), documents, fraction});
  return {part("train", 0, train), part("validation", train, documents)};
}

std::pair<ShardedTokens, ShardedTokens> ShardedTokens::split_files(int64_t files) const {
  int64_t first = 0, all = 0;
  for (const ShardPart& each : contents_->parts) {
    all += each.documents;
    if (static_cast<int64_t>(each.number) < files) first = all;
  }
  return {part("train", 0, first), part("validation", first, all)};
}

int64_t ShardedTokens::size() const { return contents_->tokens; }
int64_t ShardedTokens::vocab_size() const { return contents_->vocab_size; }
uint64_t ShardedTokens::hash() const { return contents_->hash; }
uint64_t ShardedTokens::tokenizer_hash() const { return contents_->tokenizer_hash; }
const std::string& ShardedTokens::name() const { return contents_->name; }
int64_t ShardedTokens::classes() const { return contents_->classes; }
int64_t ShardedTokens::shards() const { return static_cast<int64_t>(contents_->parts.size()); }
int64_t ShardedTokens::documents(int64_t shard) const { return contents_->parts[static_cast<size_t>(shard)].documents; }

void ShardedTokens::read(int64_t first, std::span<int64_t> ids) const {
  check_range(first, ids);
  while (!ids.empty()) {
    const ShardPart& part = contents_->part_of(first);
    const auto count = std::min(ids.size(), static_cast<size_t>(part.first + part.tokens.size() - first));
    const int64_t in_shard = part.tokens.first + first - part.first;
    contents_->maps->read(part.number, in_shard, ids.first(count), vocab_size());
    ids = ids.subspan(count);
    first += static_cast<int64_t>(count);
  }
}

TokenSpan ShardedTokens::document(int64_t shard, int64_t index) const {
  const ShardPart& part = contents_->parts[static_cast<size_t>(shard)];
  const int64_t document = part.first_document + index, first = contents_->start(part, document),
                end = contents_->start(part, document + 1);
  if (end <= first) fail("{}: document {} of the shard ends before it starts", {contents_->maps->shards()[part.number].path, document});
  return {part.first + first - part.tokens.first, part.first + end - part.tokens.first};
}

int64_t ShardedTokens::label(int64_t shard, int64_t index) const {
  const ShardPart& part = contents_->parts[static_cast<size_t>(shard)];
  const int64_t document = part.first_document + index;
  return classes() == 0
             ? -1
             : contents_->maps->get(part.number, contents_->layout(part).header.labels_offset() + document * 4, 4)->label(document);
}

}  // namespace ricci
