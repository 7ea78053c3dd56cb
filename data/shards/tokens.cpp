#include "data/shards/tokens.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/files/checksum.h"
#include "data/tokenizers/kinds.h"

namespace ricci {

int64_t TokenSource::documents(int64_t) const { return (size() + kBlock - 1) / kBlock; }

TokenSpan TokenSource::document(int64_t, int64_t index) const { return {index * kBlock, std::min(size(), (index + 1) * kBlock)}; }

int64_t TokenSource::label(int64_t, int64_t) const { return -1; }

void TokenSource::check_range(int64_t first, std::span<const int64_t> ids) const {
  const auto count = static_cast<int64_t>(ids.size());
  if (first < 0 || count > size() || first > size() - count)
    fail("{}: tokens {} to {} are not in a text of {} tokens", {name(), first, first + count, size()});
}

void check_same_tokenizer(std::span<const Tokens> sources) {
  for (const Tokens& tokens : sources) {
    const Tokens& first = sources[0];
    const bool known = tokens.tokenizer_hash() != 0 && first.tokenizer_hash() != 0;
    if ((known && tokens.tokenizer_hash() != first.tokenizer_hash()) || tokens.vocab_size() != first.vocab_size())
      fail("data: {} and {} were made by different tokenizers, of {} and {} tokens",
          {first.name(), tokens.name(), first.vocab_size(), tokens.vocab_size()});
  }
}

namespace {

// Calls use(bytes) for all ids, packed as Id.
template <class Id, class Use> void for_each_packed(const Tokens& tokens, const Use& use) {
  constexpr int64_t at_once = 1 << 16;
  for (int64_t first = 0; first < tokens.size(); first += at_once) {
    std::vector<int64_t> ids(static_cast<size_t>(std::min(at_once, tokens.size() - first)));
    tokens.read(first, ids);
    use(bytes_of(std::vector<Id>(ids.begin(), ids.end())));
  }
}

}  // namespace

uint64_t hash_of_text(const Tokens& tokens) {
  uint64_t hash = hash_bytes("");
  const auto add = [&](std::string_view packed) { hash = hash_bytes(packed, hash); };
  if (tokens.vocab_size() <= 65536) for_each_packed<uint16_t>(tokens, add);
  else for_each_packed<uint32_t>(tokens, add);
  return hash;
}

uint64_t hash_of_documents(const Tokens& tokens) {
  StreamHash ids;
  for_each_packed<uint32_t>(tokens, [&](std::string_view packed) { ids.add(packed); });
  std::vector<int64_t> starts{0};
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < tokens.documents(0); ++i) {
    starts.push_back(tokens.document(0, i).end);
    labels.push_back(static_cast<int32_t>(tokens.label(0, i)));
  }
  return xxh64(bytes_of(labels), xxh64(bytes_of(starts), ids.finish()));
}

namespace fs = std::filesystem;

namespace {

uint64_t hash_of_whole(const std::string& path) {
  const OpenFile file(path);
  return hash_of_file(file, 0, file.size());
}

std::string tokenizer_path(const std::string& path) { return path + "/tokenizer.json"; }

// The prepared shards of a folder, or where it has none all files but hidden ones, or one file.
std::vector<std::string> shard_paths(const std::string& path) {
  if (!is_folder(path)) return {path};
  const std::vector<std::string> names = Folder(path).names();
  const bool prepared = std::any_of(names.begin(), names.end(), is_shard_name);
  std::vector<std::string> paths;
  for (const std::string& name : names)
    if (prepared ? is_shard_name(name) : !name.starts_with('.')) paths.push_back(path + "/" + name);
  return paths;
}

bool is_shard_file(const std::string& path) { return is_file(path) && is_shard(OpenFile(path)); }

std::string file_name(const std::string& path) { return fs::path(path).filename().string(); }

// Error: the shards do not make one whole corpus of this tokenizer.
void check_corpus(const std::string& path, const std::vector<ShardFiles::Shard>& shards, const Tokenizer& tokenizer) {
  const ShardFiles::Shard& first = shards[0];
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
    fail("{}: the shards were made by another tokenizer, of {} tokens, than the {} tokenizer of {} tokens{}",
        {path, first.layout.header.vocab_size, tokenizer.name(), tokenizer.vocab_size(),
            first.layout.header.vocab_size == tokenizer.vocab_size() ? "; ricci-prepare --eos gives all the same end of documents" : ""});
}

}  // namespace

bool names_shards(const std::string& path) {
  if (!is_folder(path)) return is_shard_file(path);
  const std::vector<std::string> paths = shard_paths(path);
  if (!paths.empty() && is_shard_name(file_name(paths[0]))) return true;
  const auto shard = std::find_if(paths.begin(), paths.end(), is_shard_file),
             other = std::find_if_not(paths.begin(), paths.end(), is_shard_file);
  if (shard != paths.end() && other != paths.end())
    fail("{}: {} is a shard and {} is none; give shards a folder of their own", {path, file_name(*shard), file_name(*other)});
  return shard != paths.end();
}

bool has_tokenizer(const std::string& path) { return is_there(path + "/" + shard_name(0)); }

std::shared_ptr<const Tokenizer> tokenizer_of_shards(const std::string& path) { return open_tokenizer(tokenizer_path(path)); }

ShardedTokens ShardedTokens::open(const std::string& path, const Tokenizer& tokenizer) {
  std::vector<ShardFiles::Shard> shards;
  for (const std::string& each : shard_paths(path)) shards.push_back({each, read_shard_header(OpenFile(each))});
  return from_shards(path, std::move(shards), tokenizer);
}

ShardedTokens ShardedTokens::hold(const std::string& path, const Tokenizer& tokenizer) {
  std::vector<ShardFiles::Shard> shards;
  for (const std::string& each : shard_paths(path)) {
    const auto file = std::make_shared<const OpenFile>(each);
    shards.push_back({each, read_shard_header(*file), file});
    check_shard_body(*file, shards.back().layout.header);
  }
  return from_shards(path, std::move(shards), tokenizer);
}

ShardedTokens ShardedTokens::from_shards(const std::string& path, std::vector<ShardFiles::Shard> shards, const Tokenizer& tokenizer) {
  if (shards.empty()) fail("{}: no shards are there", {path});
  // Names of five digits and of six are not in the order of their numbers. The shards of llm.c have none, and stay as they are.
  std::stable_sort(
      shards.begin(), shards.end(), [](const auto& a, const auto& b) { return a.layout.header.number < b.layout.header.number; });
  check_corpus(path, shards, tokenizer);
  std::string hashes;
  for (const auto& [place, layout, file] : shards)
    hashes += format_message("{} ", {layout.is_prepared ? layout.header.body_hash : hash_of_whole(place)});
  ShardedTokens all;
  all.files_ = std::make_shared<ShardFiles>(std::move(shards));
  all.vocab_size_ = tokenizer.vocab_size();
  all.first_id_ = tokenizer.marks().first;
  all.hash_ = hash_bytes(hashes);
  all.name_ = file_name(fs::path(path).has_filename() ? path : fs::path(path).parent_path().string());
  for (size_t i = 0; i < all.files_->shards().size(); ++i) {
    const ShardLayout& layout = all.files_->shards()[i].layout;
    const int64_t blocks = (layout.tokens + kBlock - 1) / kBlock;
    // The last shard is empty when the one before was just full.
    if (layout.tokens > 0) all.add(i, {0, layout.tokens}, 0, layout.is_prepared ? layout.header.documents : blocks);
  }
  return all;
}

void ShardedTokens::add(size_t number, const TokenSpan& tokens, int64_t first_document, int64_t documents) {
  parts_.push_back({number, tokens, first_document, documents, tokens_, all_documents()});
  tokens_ += tokens.size();
}

// The documents [first, end), counted over all shards.
ShardedTokens ShardedTokens::part(const char* label, int64_t first, int64_t end) const {
  ShardedTokens part = *this;
  part.parts_.clear();
  part.tokens_ = 0;
  part.name_ += format_message(" ({})", {label});
  part.hash_ = hash_bytes(format_message("{} {}", {first, end}), hash_);
  for (const Part& whole : parts_) {
    const int64_t lo = std::max<int64_t>(first - whole.documents_before, 0), hi = std::min(end - whole.documents_before, whole.documents);
    if (lo >= hi) continue;
    const int64_t begin = in_file(whole, whole.first_document + lo).first, after = in_file(whole, whole.first_document + hi - 1).end;
    part.add(whole.number, {begin, after}, whole.first_document + lo, hi - lo);
  }
  return part;
}

std::pair<ShardedTokens, ShardedTokens> ShardedTokens::split(double fraction) const {
  const int64_t documents = all_documents();
  const auto train = static_cast<int64_t>(std::floor(static_cast<double>(documents) * fraction));
  if (train < 1 || train >= documents)
    fail("{}: has {} documents, too few for a training fraction of {}; validation=... names another text, and "
         "data=TEXT, without ricci-prepare, is split between any two characters",
        {name(), documents, fraction});
  return {part("train", 0, train), part("validation", train, documents)};
}

std::pair<ShardedTokens, ShardedTokens> ShardedTokens::split_files(int64_t files) const {
  int64_t first = 0;
  for (const Part& each : parts_)
    if (static_cast<int64_t>(each.number) < files) first = each.documents_before + each.documents;
  return {part("train", 0, first), part("validation", first, all_documents())};
}

ShardedTokens ShardedTokens::as_one_shard(const std::string& name, bool is_text, uint64_t hash) const {
  ShardedTokens one = *this;
  one.name_ = name;
  one.unit_ = is_text ? Unit::blocks : Unit::documents;
  one.hash_ = hash;
  if (hash == 0) one.hash_ = is_text ? hash_of_text(one) : hash_of_documents(one);
  return one;
}

void ShardedTokens::read(int64_t first, std::span<int64_t> ids) const {
  check_range(first, ids);
  while (!ids.empty()) {
    const Part& part = *(std::upper_bound(parts_.begin(), parts_.end(), first, [](int64_t t, const Part& p) { return t < p.first; }) - 1);
    const auto count = std::min(ids.size(), static_cast<size_t>(part.first + part.tokens.size() - first));
    files_->read(part.number, part.tokens.first + first - part.first, ids.first(count), vocab_size());
    ids = ids.subspan(count);
    first += static_cast<int64_t>(count);
  }
}

// The place of a document in its file.
TokenSpan ShardedTokens::in_file(const Part& part, int64_t document) const {
  const ShardLayout& layout = files_->shards()[part.number].layout;
  if (layout.is_prepared) return files_->document(part.number, document);
  return {document * kBlock, std::min(layout.tokens, (document + 1) * kBlock)};
}

// The part that holds a document, and its number in the file.
std::pair<const ShardedTokens::Part&, int64_t> ShardedTokens::find(int64_t shard, int64_t index) const {
  const auto after = [](int64_t number, const Part& part) { return number < part.documents_before; };
  const Part& part =
      unit_ == Unit::shards ? parts_[static_cast<size_t>(shard)] : *(std::upper_bound(parts_.begin(), parts_.end(), index, after) - 1);
  const int64_t in_part = unit_ == Unit::shards ? index : index - part.documents_before;
  return {part, part.first_document + in_part};
}

int64_t ShardedTokens::documents(int64_t shard) const {
  if (unit_ == Unit::blocks) return TokenSource::documents(shard);
  return unit_ == Unit::shards ? parts_[static_cast<size_t>(shard)].documents : all_documents();
}

TokenSpan ShardedTokens::document(int64_t shard, int64_t index) const {
  if (unit_ == Unit::blocks) return TokenSource::document(shard, index);
  const auto [part, document] = find(shard, index);
  const auto [first, end] = in_file(part, document);
  return {part.first + first - part.tokens.first, part.first + end - part.tokens.first};
}

int64_t ShardedTokens::label(int64_t shard, int64_t index) const {
  if (unit_ == Unit::blocks) return -1;
  const auto [part, document] = find(shard, index);
  return files_->label(part.number, document);
}

}  // namespace ricci
