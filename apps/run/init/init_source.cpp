#include "apps/run/init/init_source.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

#include "apps/run/config/config.h"
#include "apps/run/folder/provenance.h"
#include "apps/run/folder/run_folder.h"
#include "apps/run/init/freeze.h"
#include "apps/terminal/progress.h"
#include "core/dims.h"
#include "core/error.h"
#include "models/training/checkpoint.h"

namespace ricci::apps {
namespace {

// Parameters that have nothing to do with those of `init` once the key differs. Paths are patterns of fits_path.
constexpr struct {
  const char *key, *path;
} kDrawnAnew[] = {{"model.family", "head"}, {"model.classes", "head"}, {"model.tie", "head"}, {"model.head_bias", "head.bias"},
    {"model.positions", "pos"}, {"model.positions", "stack.*.pos"}};

// Parameters with a row for each position, or for each cell of a scale; and with a row for each token.
constexpr const char *kOfPositions[] = {"pos.weight", "stack.*.pos.weight"}, *kOfTokens[] = {"tok.weight", "head.weight", "head.bias"};

template <size_t N> bool fits_any(const char* const (&patterns)[N], const std::string& path) {
  return std::any_of(std::begin(patterns), std::end(patterns), [&](const char* pattern) { return fits_path(pattern, path); });
}

// The id of each token by the text it stands for. Texts that several tokens have are left out.
std::unordered_map<std::string, int64_t> ids_by_text(const Tokenizer& tokenizer) {
  std::unordered_map<std::string, int64_t> ids;
  std::set<std::string> several;
  for (int64_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string text = tokenizer.decode({&id, 1});
    if (!ids.emplace(text, id).second) several.insert(text);
  }
  for (const std::string& text : several) ids.erase(text);
  return ids;
}

Tensor copy_of(const Tensor& t) {
  const Tensor copy(t.shape(), t.dtype());
  std::memcpy(copy.raw(), t.raw(), static_cast<size_t>(t.bytes()));
  return copy;
}

void copy_row(const Tensor& into, int64_t row, const Tensor& from, int64_t from_row) {
  const int64_t bytes = into.bytes() / into.shape()[0];
  std::memcpy(
      static_cast<char*>(into.raw()) + row * bytes, static_cast<const char*>(from.raw()) + from_row * bytes, static_cast<size_t>(bytes));
}

bool same_rows(const Tensor& a, const Tensor& b) {
  bool same = a.shape().rank() == b.shape().rank();
  for (int i = 1; same && i < a.shape().rank(); ++i) same = a.shape()[i] == b.shape()[i];
  return same;
}

}  // namespace

InitSource::InitSource(const TrainConfig& config) : config_(config), before_(keys_in_init(config.init)) {
  check_changes(config);
  const InitPlace place = init_place(config.init);
  if (place.file.empty()) {
    const RunFolder run = RunFolder::open(place.run, RunFolder::Vocabulary::optional);
    old_tokenizer_ = run.tokenizer();
    weights_ = std::make_shared<const SafetensorsFile>(run.open_weights(place.which));
  } else {
    weights_ = std::make_shared<const SafetensorsFile>(place.file);
  }
  if (!lists_change(config, "tokenizer")) kept_tokenizer_ = old_tokenizer_;
}

// The key differs as far as is known.
bool InitSource::changed(const std::string& key) const {
  const auto before = before_.find(key);
  if (before == before_.end()) return lists_change(config_, key);
  TrainConfig config = config_;
  const Texts now = value_texts(fields_of(config));
  const auto found = now.find(key);
  return found == now.end() ? lists_change(config_, key) : found->second != before->second.value;
}

bool InitSource::drawn_anew(const std::string& path) const {
  return std::any_of(
      std::begin(kDrawnAnew), std::end(kDrawnAnew), [&](const auto& row) { return fits_path(row.path, path) && changed(row.key); });
}

Tensor InitSource::value_of(const std::string& path, const Tensor& drawn, const Tokenizer& tokenizer, std::string& notes) const {
  const auto note = [&](int64_t rows) {
    notes += format_message("; {}: {} of {} rows", {path, with_commas(rows), with_commas(drawn.shape()[0])});
  };
  const SafetensorsFile& file = *weights_;
  if (drawn_anew(path)) {
    note(0);
    return drawn;
  }
  if (!file.contains(path)) fail("{}: tensor {} {} is missing", {file.path(), path, show(drawn.shape())});
  const Tensor old = file.load_f32(path);
  const bool other_tokens = fits_any(kOfTokens, path) && lists_change(config_, "tokenizer");
  const bool other_length = fits_any(kOfPositions, path) && changed("model.ctx");
  if (!other_tokens && old.shape() == drawn.shape()) return old;
  if (!(other_tokens || other_length) || !same_rows(old, drawn))
    fail("{}: tensor {} is {}, expected {}", {file.path(), path, show(old.shape()), show(drawn.shape())});
  const Tensor mixed = copy_of(drawn);
  int64_t rows = 0;
  if (other_length)
    for (; rows < std::min(old.shape()[0], mixed.shape()[0]); ++rows) copy_row(mixed, rows, old, rows);
  if (other_tokens && old_tokenizer_) {
    const auto before = ids_by_text(*old_tokenizer_), now = ids_by_text(tokenizer);
    for (const auto& [text, id] : now) {
      const auto found = before.find(text);
      if (found == before.end()) continue;
      copy_row(mixed, id, old, found->second);
      ++rows;
    }
  }
  note(rows);
  return mixed;
}

std::string InitSource::load(Model& model, const Tokenizer& tokenizer) const {
  const SafetensorsFile& file = *weights_;
  if (!old_tokenizer_ && !lists_change(config_, "tokenizer") && !tells_tokenizer(file, tokenizer))
    fail("{}: it was trained with another tokenizer than this run's; init_changes: [tokenizer] draws the rows of its tokens anew",
        {file.path()});
  std::map<std::string, Tensor> drawn;
  model.each_parameter([&](const std::string& path, Parameter& p) { drawn[path] = p.value; });
  std::string notes;
  model.load([&](const std::string& path, const Shape&) { return value_of(path, drawn.at(path), tokenizer, notes); });
  for (const std::string& name : file.names())
    if (!drawn.contains(name) && !name.starts_with(kOptimizerPrefix) && !drawn_anew(name))
      fail("{}: tensor {} {} is no parameter of this model", {file.path(), name, show(file.shape(name))});
  return format_message("starts from {}{}", {file.path(), notes});
}

}  // namespace ricci::apps
