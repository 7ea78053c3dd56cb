#include "apps/run/init.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "apps/run/config.h"
#include "apps/run/corpus.h"
#include "apps/run/places.h"
#include "apps/run/record.h"
#include "apps/run/run.h"
#include "apps/terminal/nearest.h"
#include "apps/terminal/progress.h"
#include "core/dims.h"
#include "core/error.h"
#include "models/training/checkpoint.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char *kTokenizer = "tokenizer", *kVocab = "model.vocab", *kDropout = "model.dropout", *kChat = "chat";

// Keys that change the names or shapes of the weights. Without them the advice would end in an error about a tensor.
constexpr const char* kSizes[] = {"model.bias", "model.d", "model.ff", "model.gated", "model.head_width", "model.kv_heads", "model.layers",
    "model.mixer", "model.mixer_bias", "model.norm_bias", "model.norm_kind", "model.qk_norm", "model.qkv_bias", "model.scales",
    "model.share_heads", "model.value_proj"};

bool is_of_tokenizer(const std::string& key) { return key == kTokenizer || key == kVocab || key == kChat; }

// True for the keys that define a model: its own, and those by which text becomes ids.
bool says_what_a_model_is(const std::string& key) { return key.starts_with("model.") || is_of_tokenizer(key); }

std::map<std::string, InitKey> model_keys(TrainConfig config) {
  std::map<std::string, InitKey> keys;
  for (const Field& field : fields_of(config)) {
    if (!field.is_read || !says_what_a_model_is(field.key)) continue;
    const auto found = config.following.find(field.key);
    const bool follows = found != config.following.end() && (!field.follows_choices || field.key == kVocab);
    keys[field.key] = {value_text(field), follows ? found->second : value_text(field)};
  }
  return keys;
}

std::map<std::string, InitKey> keys_in(const Metadata& metadata) {
  std::map<std::string, InitKey> keys;
  for (const auto& [key, value] : lines_in(metadata, "config"))
    if (says_what_a_model_is(key)) keys[key] = {value, value};
  for (const auto& [key, said] : lines_in(metadata, "following"))
    if (const auto found = keys.find(key); found != keys.end()) found->second.said = said;
  return keys;
}

// Error: `levels` of a Dispatcher is null, and the context of this run needs another number than `init` has. Its coefficients fit only its
// own number of levels.
void check_levels(const TrainConfig& config, const std::map<std::string, InitKey>& before) {
  const auto levels = before.find("model.levels"), ctx = before.find("model.ctx");
  if (levels == before.end() || levels->second.value != "null" || ctx == before.end()) return;
  if (config.model.mixer != kind_of<Dispatcher> || config.model.settings<Dispatcher>().levels) return;
  const int64_t had = DispatcherConfig::levels_for(std::min<int64_t>(std::stoll(ctx->second.value), kLargestSize)),
                needed = DispatcherConfig::levels_for(config.model.ctx);
  if (needed != had)
    fail("init: {} has {} levels, but model.levels: null gives {} in model.ctx: {}; model.levels={} with init_changes: [model.ctx, "
         "model.levels] keeps them",
        {config.init, had, needed, config.model.ctx, had});
}

// "step-00000250.safetensors" -> "250"
std::string step_of(const std::string& name) {
  const size_t first = name.find_first_of("123456789"), end = name.find('.');
  return first == name.npos || first >= end ? "0" : name.substr(first, end - first);
}

// The place that `init` names. The name of a run, or the path of a run folder, of its model.safetensors or of one of its checkpoints is
// that run; any other file is weights alone.
struct InitPlace {
  std::string run = {}, which = "last";  // as in RunFolder::load_model; an empty run: weights alone
  std::string file = {};
};

InitPlace init_place(const std::string& init) {
  std::string path = find_run(init);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (!is_file(path)) return {.run = path};
  const fs::path folder = fs::path(path).parent_path();
  const std::string name = fs::path(path).filename();
  if (name == "model.safetensors" && is_file(folder / "config.yaml")) return {.run = folder};
  if (folder.filename() == "checkpoints" && name.starts_with("step-") && is_file(folder.parent_path() / "config.yaml"))
    return {.run = folder.parent_path(), .which = step_of(name)};
  return {.file = path};
}

// The keys of model and tokenizer that `init` was trained with: from the config.yaml of a run, or from the metadata of other weights.
// Empty where the metadata has none. Errors: as for load_config; an unreadable file.
std::map<std::string, InitKey> keys_in_init(const std::string& init) {
  const InitPlace place = init_place(init);
  if (!place.file.empty()) return keys_in(SafetensorsFile(place.file).metadata());
  if (!is_there(place.run)) fail("init: there is neither a run folder nor a file {}", {one_line(init, 200)});
  const RunFolder run = RunFolder::open(place.run, RunFolder::Vocabulary::optional);
  std::map<std::string, InitKey> keys = model_keys(with_found_files(run.config(), FilesOf::old_run));
  if (run.tokenizer()) return keys;
  keys.erase(kTokenizer);  // imported without one: any with the same number of tokens fits
  return keys;
}

bool lists_change(const TrainConfig& config, const std::string& key) {
  return std::find(config.init_changes.begin(), config.init_changes.end(), key) != config.init_changes.end();
}

// Errors: a key of this run differs from `init` without being in init_changes; a name in init_changes is not a key of the model; the levels
// of a Dispatcher follow a context that needs another number of them. Dropout and the template of conversations are free, because they
// change how a model is trained, and not what it computes.
void check_changes(const TrainConfig& config, const std::map<std::string, InitKey>& before) {
  const std::map<std::string, InitKey> now = model_keys(config);
  std::vector<std::string> known;
  for (const auto* keys : {&now, &before})
    for (const auto& [key, value] : *keys) known.push_back(key);
  for (const std::string& key : config.init_changes)
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail("init_changes: '{}' is no key of this model{}", {one_line(key), nearest_note(key, known)});
  for (const auto& [key, was] : before) {
    const auto found = now.find(key);
    const bool is_same = found != now.end() && (found->second.value == was.value || found->second.said == was.said);
    const bool has_other_tokenizer = is_of_tokenizer(key) && lists_change(config, kTokenizer);
    const bool is_allowed = key == kDropout || key == kChat || lists_change(config, key) || has_other_tokenizer;
    if (is_same || is_allowed) continue;
    if (found == now.end() && lists_change(config, "model.family")) continue;  // the other family has no such key
    const bool is_size = found == now.end() || std::find(std::begin(kSizes), std::end(kSizes), key) != std::end(kSizes);
    std::string way_out = "its weights fit only a model of its size";
    if (!is_size) way_out = "init_changes='[" + (key == kVocab ? kTokenizer : key) + "]' allows that";
    fail("init: {} has {}: {}, not {}; {}", {config.init, key, was.value, found == now.end() ? "none" : found->second.value, way_out});
  }
  check_levels(config, before);
}

// The tokenizer of init with its end of lines or documents; documents can get the end of text that it has. Error: the run asks for another
// end.
std::shared_ptr<const Tokenizer> kept_tokenizer(const TrainConfig& config, const std::shared_ptr<const Tokenizer>& before) {
  if (!before || is_chat(config)) return before;
  const auto kept = config.eos == Eos::document ? with_own_eos(before) : before;
  if (!follows_tokenizer_eos(config) && eos_of(*kept) != config.eos)
    fail(
        "init: {} has eos: {}, not {}; init_changes='[tokenizer]' allows that", {config.init, name_of(eos_of(*kept)), name_of(config.eos)});
  return kept;
}

// ---- The weights
// Parameters that have nothing to do with the same parameters of `init` once the key differs. Paths are patterns of fits_path.
constexpr struct {
  const char *key, *path;
} kDrawnAnew[] = {{"model.family", "head"}, {"model.classes", "head"}, {"model.tie", "head"}, {"model.head_bias", "head.bias"},
    {"model.positions", "pos"}, {"model.positions", "stack.*.pos"}};

// Parameters with a row for each position, or for each cell of a scale; and with a row for each token.
constexpr const char *kOfPositions[] = {"pos.weight", "stack.*.pos.weight"}, *kOfTokens[] = {"tok.weight", "head.weight", "head.bias"};

template <size_t N> bool fits_any(const char* const (&patterns)[N], const std::string& path) {
  return std::any_of(std::begin(patterns), std::end(patterns), [&](const char* pattern) { return fits_path(pattern, path); });
}

// The id of each token by its text. Texts that several tokens have are left out.
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

int64_t planned_vocab(const TrainConfig& config, const std::string& file) {
  if (config.model.vocab) return config.model.vocab;
  if (!config.init.empty())
    if (const auto kept = InitSource(config).tokenizer()) return kept->vocab_size();
  const fs::path folder = fs::path("." / fs::path(file)).parent_path();
  if (fs::path(file).filename() == "config.yaml" && is_file(folder / "tokenizer.json")) {
    const TrainConfig trained = RunFolder::open(folder, RunFolder::Vocabulary::optional).config();
    const bool asks_for_it = trained.data == config.data && trained.tokenizer == config.tokenizer &&
                             (follows_tokenizer_eos(config) || trained.eos == config.eos);
    if (asks_for_it) return trained.model.vocab;
  }
  return vocab_of(config, *open_corpus(config, nullptr).tokenizer);
}

std::vector<std::string> keys_of_init(const TrainConfig& config) {
  std::vector<std::string> assignments;
  if (config.init.empty()) return assignments;
  const bool other_tokenizer = lists_change(config, kTokenizer);
  for (const auto& [key, before] : keys_in_init(config.init))
    if (!other_tokenizer || !is_of_tokenizer(key)) assignments.push_back(key + "=" + before.said);
  return assignments;
}

InitSource::InitSource(const TrainConfig& config) : config_(config), before_(keys_in_init(config.init)) {
  check_changes(config, before_);
  const InitPlace place = init_place(config.init);
  if (place.file.empty()) {
    const RunFolder run = RunFolder::open(place.run, RunFolder::Vocabulary::optional);
    old_tokenizer_ = run.tokenizer();
    weights_ = std::make_shared<const SafetensorsFile>(run.open_weights(place.which));
    talks_ = read_template(run.folder());
    const bool is_kept =
        config.model.traits().writes_text() && !is_chat(config) && config.chat == run.config().chat && !lists_change(config, kTokenizer);
    if (!is_kept && !talks_.empty()) note_ = "; its imported template of conversations is not taken over";
    if (!is_kept) talks_ = {};
  } else {
    weights_ = std::make_shared<const SafetensorsFile>(place.file);
    weights_->verify_if_checked();
  }
  if (!lists_change(config, kTokenizer)) kept_tokenizer_ = kept_tokenizer(config, old_tokenizer_);
}

// The key differs as far as is known.
bool InitSource::changed(const std::string& key) const {
  const auto before = before_.find(key);
  if (before == before_.end()) return lists_change(config_, key);
  TrainConfig config = config_;
  const TextsByKey now = value_texts(fields_of(config));
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
  if (!old_tokenizer_ && !lists_change(config_, "tokenizer") && !fits_tokenizer(file, tokenizer))
    fail("{}: it was trained with another tokenizer than this run's; init_changes: [tokenizer] draws the rows of its tokens anew",
        {file.path()});
  std::map<std::string, Tensor> drawn;
  model.each_parameter([&](const std::string& path, Parameter& p) { drawn[path] = p.value; });
  std::string notes;
  model.load([&](const std::string& path, const Shape&) { return value_of(path, drawn.at(path), tokenizer, notes); });
  for (const std::string& name : file.names())
    if (!drawn.contains(name) && !name.starts_with(kOptimizerPrefix) && !drawn_anew(name))
      fail("{}: tensor {} {} is no parameter of this model", {file.path(), name, show(file.shape(name))});
  return format_message("starts from {}{}", {file.path(), notes + note_});
}

}  // namespace ricci::apps
