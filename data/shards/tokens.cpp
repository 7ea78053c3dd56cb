#include "data/shards/tokens.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/files/checksum.h"
#include "core/json.h"
#include "data/tokenizers/kinds.h"

namespace ricci {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<std::shared_ptr<const ShardFile>>;

std::string file_name(const std::string& path) { return fs::path(path).filename().string(); }

bool is_shard_file(const std::string& path) { return is_file(path) && is_shard(File(path)); }

// Returns the prepared shards in a folder or, without these, all its visible files. Returns the path of a file unchanged.
std::vector<std::string> shard_paths(const std::string& path) {
  if (!is_folder(path)) return {path};
  const std::vector<std::string> names = names_in(path);
  const bool prepared = std::any_of(names.begin(), names.end(), is_shard_name);
  std::vector<std::string> paths;
  for (const std::string& name : names)
    if (prepared ? is_shard_name(name) : !name.starts_with('.')) paths.push_back(path + "/" + name);
  return paths;
}

// Opens the shards in numerical order.
Files open_files(const std::string& path) {
  const std::vector<std::string> paths = shard_paths(path);
  rlimit limit = {};
  if (paths.size() > 100 && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {  // raises the limit of open files to its maximum
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  Files files;
  for (const std::string& each : paths) files.push_back(std::make_shared<const ShardFile>(each));
  if (files.empty()) fail("{}: has no shards", {path});
  // Sorted names of five and six digits are not in numerical order. llm.c shards have no numbers and keep their order.
  std::stable_sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a->header().number < b->header().number; });
  return files;
}

// Error: the shards are not one complete corpus of this tokenizer.
void check_corpus(const std::string& path, const Files& files, const Tokenizer& tokenizer) {
  const ShardHeader& first = files[0]->header();
  for (size_t i = 0; i < files.size(); ++i) {
    const ShardHeader& header = files[i]->header();
    const auto reject = [&](const char* why) { fail("{}: {} {}", {files[i]->path(), why, files[0]->path()}); };
    if (header.is_prepared() != first.is_prepared() || header.bytes_per_token != first.bytes_per_token)
      reject("the shard has a different format than");
    if (header.tokenizer_hash != first.tokenizer_hash) reject("the shard was made by a different tokenizer than");
    if (header.source_hash != first.source_hash) reject("the shard belongs to a different corpus than");
    if (header.is_prepared() && header.number != static_cast<int64_t>(i))
      fail("{}: shard {} of the corpus is missing", {path, shard_name(static_cast<int64_t>(i))});
  }
  if (!first.is_prepared()) return;
  if (!files.back()->header().is_last) fail("{}: the last shard is missing; run ricci prepare again to finish", {path});
  if (first.tokenizer_hash != tokenizer.hash() || first.vocab_size != tokenizer.vocab_size())
    fail("{}: the shards were made by a different tokenizer of {} tokens, not by the {} tokenizer of {} tokens{}",
        {path, first.vocab_size, tokenizer.name(), tokenizer.vocab_size(),
            first.vocab_size == tokenizer.vocab_size() ? "; ricci prepare --eos gives all shards the same end token" : ""});
}

}  // namespace

bool names_shards(const std::string& path) {
  if (!is_folder(path)) return is_shard_file(path);
  const std::vector<std::string> paths = shard_paths(path);
  if (!paths.empty() && is_shard_name(file_name(paths[0]))) return true;
  const auto shard = std::find_if(paths.begin(), paths.end(), is_shard_file),
             other = std::find_if_not(paths.begin(), paths.end(), is_shard_file);
  if (shard != paths.end() && other != paths.end())
    fail("{}: {} is a shard, but {} is not; put shards into a separate folder", {path, file_name(*shard), file_name(*other)});
  return shard != paths.end();
}

bool has_tokenizer(const std::string& path) { return is_there(path + "/" + shard_name(0)); }

std::shared_ptr<const Tokenizer> tokenizer_of_shards(const std::string& path) { return open_tokenizer(path + "/tokenizer.json"); }

std::vector<std::string> labels_of_shards(const std::string& path) {
  const std::string file = path + "/labels.json";
  if (!is_there(file)) return {};
  return read_member<std::vector<std::string>>(read_json(file), "labels", file).value_or(std::vector<std::string>());
}

// ---- A corpus
Tokens Tokens::open(const std::string& path, const Tokenizer& tokenizer) {
  const Files files = open_files(path);
  check_corpus(path, files, tokenizer);
  const ShardHeader& first = files[0]->header();
  Tokens all;
  all.vocab_size_ = tokenizer.vocab_size();
  all.first_id_ = tokenizer.marks().first;
  all.tokenizer_hash_ = first.tokenizer_hash;
  all.classes_ = first.classes;
  const fs::path place = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
  all.name_ = place.filename().string();
  std::string hashes;
  for (const auto& file : files) {
    const ShardHeader& header = file->header();
    hashes += format_message("{} ", {header.body_hash});
    if (header.documents > 0) all.shards_.push_back({all.documents_in_parts(), header.documents});
    all.add({file, {0, header.tokens}, 0, header.documents});
  }
  all.hash_ = hash_bytes(hashes);
  return all;
}

Tokens Tokens::open_cached(const std::string& path, const Tokenizer& tokenizer, const std::string& name) {
  Tokens all = open(path, tokenizer);
  all.shards_ = {{0, all.documents_in_parts()}};
  all.name_ = name;
  for (const Part& part : all.parts_) part.file->check_body();
  return all;
}

Tokens Tokens::without_parts() const {
  Tokens none = *this;
  none.parts_.clear();
  none.shards_.clear();
  none.tokens_ = 0;
  return none;
}

void Tokens::add(Part part) {
  part.first = tokens_;
  part.first_of_all = documents_in_parts();
  tokens_ += part.tokens.size();
  parts_.push_back(std::move(part));
}

int64_t Tokens::documents() const {
  int64_t all = 0;
  for (const Shard& shard : shards_) all += shard.documents;
  return all;
}

// ---- Reading
// Calls use(part, first, count) for the tokens [first, first + count) of a file.
template <class Use> void Tokens::for_each_part(int64_t first, size_t size, const Use& use) const {
  const auto count = static_cast<int64_t>(size);
  if (first < 0 || count > tokens_ || first > tokens_ - count)
    fail("{}: tokens {} to {} are outside the text of {} tokens", {name_, first, first + count, tokens_});
  for (const int64_t end = first + count; first < end;) {
    const Part& part = *(std::upper_bound(parts_.begin(), parts_.end(), first, [](int64_t t, const Part& p) { return t < p.first; }) - 1);
    const int64_t here = std::min(end, part.first + part.tokens.size()) - first;
    use(part, part.tokens.first + first - part.first, static_cast<size_t>(here));
    first += here;
  }
}

void Tokens::read(int64_t first, std::span<int64_t> ids) const {
  for_each_part(first, ids.size(), [&](const Part& part, int64_t in_file, size_t count) {
    part.file->read(in_file, ids.first(count), vocab_size_);
    ids = ids.subspan(count);
  });
}

bool Tokens::has_mask() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.file->header().has_mask(); });
}

void Tokens::read_counts(int64_t first, std::span<uint8_t> counts) const {
  for_each_part(first, counts.size(), [&](const Part& part, int64_t in_file, size_t count) {
    part.file->read_counts(in_file, counts.first(count));
    counts = counts.subspan(count);
  });
}

// The part that contains a document of a shard, and the document's index in its file.
std::pair<const Tokens::Part&, int64_t> Tokens::find(const Shard& shard, int64_t index) const {
  const auto is_before = [](int64_t number, const Part& part) { return number < part.first_of_all; };
  index += shard.first_of_all;
  const Part& part = *(std::upper_bound(parts_.begin(), parts_.end(), index, is_before) - 1);
  return {part, part.first_document + index - part.first_of_all};
}

TokenSpan Tokens::document(int64_t number, int64_t index) const {
  const Shard& shard = shards_[static_cast<size_t>(number)];
  if (shard.chosen) {
    const auto [first, end] = (*shard.chosen)[static_cast<size_t>(index)];
    return {shard.first + first, shard.first + end};
  }
  const auto [part, document] = find(shard, index);
  const auto [first, end] = part.file->document(document);
  return {part.first + first - part.tokens.first, part.first + end - part.tokens.first};
}

int64_t Tokens::label(int64_t number, int64_t index) const {
  const Shard& shard = shards_[static_cast<size_t>(number)];
  if (shard.chosen) return -1;
  const auto [part, document] = find(shard, index);
  return part.file->label(document);
}

// ---- Parts
// Returns the documents [first, end), indexed over all parts.
Tokens Tokens::part(const char* label, int64_t first, int64_t end) const {
  Tokens some = without_parts();
  some.name_ += format_message(" ({})", {label});
  some.hash_ = hash_bytes(format_message("{} {}", {first, end}), hash_);
  for (const Part& part : parts_) {
    const int64_t before = part.first_document - part.first_of_all, lo = before + std::max(first, part.first_of_all),
                  hi = before + std::min(end, part.first_of_all + part.documents);
    if (lo < hi) some.add({part.file, {part.file->document(lo).first, part.file->document(hi - 1).end}, lo, hi - lo});
  }
  for (const Shard& shard : shards_) {
    const int64_t lo = std::max(first, shard.first_of_all), hi = std::min(end, shard.first_of_all + shard.documents);
    if (lo < hi) some.shards_.push_back({lo - first, hi - lo});
  }
  return some;
}

std::pair<Tokens, Tokens> Tokens::split(double train_fraction) const {
  const auto train = static_cast<int64_t>(std::floor(static_cast<double>(documents()) * train_fraction));
  if (train < 1 || train >= documents())
    fail("{}: a training fraction of {} leaves no documents for training or validation; set validation=...", {name_, train_fraction});
  return {part("train", 0, train), part("validation", train, documents())};
}

std::pair<Tokens, Tokens> Tokens::split_at_cut() const {
  int64_t first = 0;
  for (const Part& part : parts_) first += part.file->header().after_cut ? 0 : part.documents;
  return {part("train", 0, first), part("validation", first, documents())};
}

int64_t Tokens::bytes_before_cut() const {
  int64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.file->header().after_cut ? 0 : part.file->header().text_bytes;
  return bytes;
}

Tokens Tokens::in_blocks() const {
  std::vector<TokenSpan> blocks;
  for (const Part& part : parts_)
    for (int64_t i = part.first_document; i < part.first_document + part.documents; ++i) {
      const auto [first, end] = part.file->document(i);
      const int64_t before = part.first - part.tokens.first;
      TokenSpan rest{before + first, before + end};
      if (i == 0 && part.file->header().first_document_continues && !blocks.empty()) {
        rest.first = blocks.back().first;
        blocks.pop_back();
      }
      for (; rest.size() > 0; rest.first = std::min(rest.end, rest.first + kBlock))
        blocks.push_back({rest.first, std::min(rest.end, rest.first + kBlock)});
    }
  return select(std::move(blocks));
}

Tokens Tokens::select(std::vector<TokenSpan> documents) const {
  Tokens few = *this;
  few.classes_ = 0;
  const int64_t count = std::ssize(documents);
  few.shards_ = {{0, count, std::make_shared<const std::vector<TokenSpan>>(std::move(documents))}};
  return few;
}

// ---- Multiple corpora
Tokens join(std::vector<Tokens> sources) {
  if (sources.empty()) fail("data: no tokens were given");
  if (sources.size() == 1) return sources[0];
  const Tokens& first = sources[0];
  Tokens all = first.without_parts();
  std::string hashes;
  for (const Tokens& tokens : sources) {
    const bool known = tokens.tokenizer_hash() != 0 && first.tokenizer_hash() != 0;
    if ((known && tokens.tokenizer_hash() != first.tokenizer_hash()) || tokens.vocab_size() != first.vocab_size())
      fail("data: {} and {} were made by different tokenizers, of {} and {} tokens",
          {first.name(), tokens.name(), first.vocab_size(), tokens.vocab_size()});
    for (Tokens::Shard shard : tokens.shards_) {
      shard.first_of_all += all.documents_in_parts();
      shard.first += all.tokens_;
      all.shards_.push_back(shard);
    }
    for (const Tokens::Part& part : tokens.parts_) all.add(part);
    all.classes_ = all.classes_ == 0 || tokens.classes_ == 0 ? 0 : std::max(all.classes_, tokens.classes_);
    hashes += format_message("{} {} ", {tokens.size(), tokens.hash()});
  }
  all.hash_ = hash_bytes(hashes);
  all.name_ += format_message(" and {} more", {sources.size() - 1});
  return all;
}

}  // namespace ricci
