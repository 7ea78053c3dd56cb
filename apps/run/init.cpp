// A start from another run, the key `init`. Its keys of model and tokenizer become defaults of the new run, and its weights come by name,
// because a user who changes one key of the model wants to keep everything that still fits.
#include <algorithm>
#include <filesystem>
#include <map>

#include "apps/run/corpus.h"
#include "apps/run/run.h"
#include "apps/terminal/progress.h"
#include "core/dims.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char *kTokenizer = "tokenizer", *kVocab = "model.vocab", *kChat = "chat", *kFamily = "model.family";

// `init` is a run by its name or folder, its model.safetensors, one of its checkpoints, or any other file with weights.
struct Place {
  std::string run = {}, file = {};  // no file: the last weights of the run
  RunFolder open() const { return RunFolder::open(run, RunFolder::Vocabulary::optional); }
};

Place place_of(const std::string& init) {
  const fs::path path = find_run(init);
  if (!is_there(path)) fail("init: {} is neither a run folder nor a file", {one_line(init, 200)});
  if (!is_file(path)) return {.run = path};
  const bool is_checkpoint = path.parent_path().filename() == "checkpoints";
  const fs::path folder = is_checkpoint ? path.parent_path().parent_path() : path.parent_path();
  const bool is_of_run = (is_checkpoint || path.filename() == kModelFile) && is_file(folder / "config.yaml");
  return {.run = is_of_run ? folder : "", .file = path};
}

// The keys that init was trained with, without values that follow from other keys, because these must follow from the keys of the new run.
// other_choices: the new run has another family, preset or mixer, so defaults of the old one are included as values.
TextsByKey keys_of(const Place& place, bool other_choices) {
  TextsByKey keys;
  if (place.run.empty()) {
    const Metadata metadata = SafetensorsFile(place.file).metadata();
    keys = lines_in(metadata, "config");
    for (const auto& [key, value] : lines_in(metadata, "following")) keys[key] = value;
  } else {
    const RunFolder run = place.open();
    TrainConfig config = with_found_files(run.config());
    for (const Field& field : fields_of(config)) {
      const bool is_default = field.is_deciding || (other_choices && field.follows_choices && field.key != kVocab);
      if (field.is_read && (is_default || config.given.contains(field.key))) keys[field.key] = value_text(field);
    }
    if (!run.tokenizer()) keys.erase(kTokenizer);  // imported without one, so any of the same size fits
  }
  return keys;
}

}  // namespace

TrainConfig load_run_file(const std::string& path, const std::vector<std::string>& overrides) {
  TrainConfig choices;
  const std::vector<Field> fields = fields_of(choices);
  const Settings own = settings_of(path, overrides, fields);
  store_choices(own, fields);
  if (choices.init.empty()) return config_of<TrainConfig>(own);
  const auto names = [&](std::string_view key) { return std::any_of(own.begin(), own.end(), [&](auto& s) { return s.key == key; }); };
  TextsByKey before = keys_of(place_of(choices.init), names(kFamily) || names("model.preset") || names("model.mixer"));
  if (names(kTokenizer) && before.contains(kTokenizer) && before[kTokenizer] != with_found_files(choices).tokenizer)
    for (const char* const of_tokenizer : {kVocab, kChat}) before.erase(of_tokenizer);
  std::vector<std::string> words;
  for (const Field& field : fields)
    if (field.key.starts_with("model.") || field.key == kTokenizer || field.key == kChat)
      if (const auto key = before.extract(field.key)) words.push_back(key.key() + "=" + key.mapped());
  Settings all = settings_of("", words, fields);
  for (Setting& each : all) {
    each.place = "init: " + choices.init;
    each.is_optional = true;
  }
  for (const Setting& each : own) all.push_back(each);
  return config_of<TrainConfig>(all);
}

int64_t planned_vocab(const TrainConfig& config, const std::string& file) {
  if (config.model.vocab) return config.model.vocab;
  if (!config.init.empty())
    if (const auto kept = InitSource(config).tokenizer()) return kept->vocab_size();
  const fs::path path = "." / fs::path(file), folder = path.parent_path();
  if (path.filename() == "config.yaml" && is_file(folder / "tokenizer.json")) {
    const TrainConfig run = Place{.run = folder}.open().config();
    const bool same_end = follows_tokenizer_eos(config) || run.eos == config.eos;
    if (same_end && run.data == config.data && run.tokenizer == config.tokenizer) return run.model.vocab;
  }
  return vocab_of(config, *request_of(config).tokenizer);
}

InitSource::InitSource(const TrainConfig& config) {
  const Place place = place_of(config.init);
  TextsByKey before = keys_of(place, false);
  has_other_family_ = before.contains(kFamily) && before[kFamily] != name_of(config.model.family);
  names_other_tokenizer_ = before.contains(kTokenizer) ? before[kTokenizer] != config.tokenizer : config.given.contains(kTokenizer);
  if (!place.file.empty()) {
    weights_ = std::make_shared<const SafetensorsFile>(place.file);
    weights_->verify_if_checked();
  }
  if (place.run.empty()) return;
  const RunFolder run = place.open();
  if (!weights_) weights_ = std::make_shared<const SafetensorsFile>(run.open_weights());
  old_tokenizer_ = run.tokenizer();
  if (!names_other_tokenizer_) kept_tokenizer_ = old_tokenizer_;
  if (!kept_tokenizer_ || is_chat(config)) return;
  if (config.eos == Eos::document) kept_tokenizer_ = with_own_eos(kept_tokenizer_);
  if (const Eos eos = kept_tokenizer_->eos(); !follows_tokenizer_eos(config) && eos != config.eos)
    fail("init: {} has eos: {}, not {}; tokenizer=FILE names one with that end", {config.init, name_of(eos), name_of(config.eos)});
  if (config.chat == run.config().chat) template_ = read_template(run.path());
}

std::string InitSource::load(Model& model, const Tokenizer& tokenizer) const {
  const SafetensorsFile& file = *weights_;
  const bool fits = old_tokenizer_ ? old_tokenizer_->hash() == tokenizer.hash() : fits_tokenizer(file.metadata(), tokenizer);
  const bool other_tokens = !fits && names_other_tokenizer_, has_tokens = model.config().traits().is_language_model();
  if (!fits && !other_tokens && !old_tokenizer_)
    fail("{}: it was trained with another tokenizer than this run's; tokenizer={} draws the rows of its tokens",
        {file.path(), tokenizer.name()});
  using Rows = std::vector<std::pair<int64_t, int64_t>>;  // in the new table and in the old one
  Rows tokens;
  if (other_tokens && old_tokenizer_) tokens = match_tokens(tokenizer, *old_tokenizer_);
  std::map<std::string, Tensor> drawn;
  model.each_parameter([&](const std::string& path, Parameter& p) { drawn[path] = p.value; });
  std::string notes;
  std::vector<std::string> as_drawn;
  size_t missing = 0;
  model.load([&](const std::string& path, const Shape& shape) {
    const bool is_head = path.starts_with("head."), by_text = other_tokens && (path == "tok.weight" || (is_head && has_tokens));
    const bool is_there = file.contains(path), same_shape = is_there && file.shape(path) == shape;
    const Tensor value = drawn.at(path);
    missing += !is_there;
    if (!is_there || (is_head && (has_other_family_ || (!same_shape && !by_text)))) {
      as_drawn.push_back(path);
      return value;
    }
    const Tensor old = file.load_f32(path);
    if (same_shape && !by_text) return old;
    Shape other_rows = old.shape();
    other_rows.set(0, shape[0]);
    const bool by_position = path == "pos.weight" || path.ends_with(".pos.weight");
    if (!(by_text || by_position) || !(other_rows == shape))
      fail("{}: tensor {} is {}, expected {}", {file.path(), path, show(old.shape()), show(shape)});
    Rows rows = by_text ? tokens : Rows();
    for (int64_t row = 0; by_position && row < std::min(old.shape()[0], shape[0]); ++row) rows.emplace_back(row, row);
    const int64_t width = value.size() / std::max<int64_t>(shape[0], 1);  // a scale can have no cell
    for (const auto& [now, before] : rows) std::copy_n(old.data<float>() + before * width, width, value.data<float>() + now * width);
    notes += format_message("\n  {}: {} of {} rows", {path, with_commas(std::ssize(rows)), with_commas(shape[0])});
    return value;
  });
  constexpr size_t most_names = 4;
  if (as_drawn.size() > most_names) notes += format_message("\n  drawn: {} tensors", {as_drawn.size()});
  else
    for (const std::string& path : as_drawn) notes += "\n  " + path + ": drawn";
  if (missing == drawn.size()) fail("{}: holds no parameter of this model", {file.path()});
  int64_t unused = 0;
  for (const std::string& name : file.names()) unused += !drawn.contains(name) && !name.starts_with(kOptimizerPrefix);
  if (unused) notes += "\n  not used: " + counted(unused, "tensor");
  return format_message("starts from {}{}", {file.path(), notes});
}

}  // namespace ricci::apps
