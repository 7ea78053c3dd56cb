#include "apps/run/init.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "apps/run/corpus.h"
#include "apps/run/places.h"
#include "apps/run/provenance.h"
#include "apps/run/run_folder.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "core/dims.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char *kTokenizer = "tokenizer", *kVocab = "model.vocab", *kChat = "chat", *kFamily = "model.family";

// The source: a run, or a weight file outside run folders.
struct Source {
  std::optional<RunFolder> run = {};
  std::string file = {};
};

Source open_source(const std::string& init) {
  const NamedWeights named = find_weights(init);
  if (is_folder(named.run)) return {.run = RunFolder::open(init, RunFolder::Vocabulary::optional)};
  if (!is_file(named.file)) fail("init: {} is neither a run folder nor a file{}", {one_line(init, 200), runs_note(named.run)});
  return {.file = named.file};
}

SafetensorsFile open_weights(const Source& source) {
  if (source.run) return source.run->open_weights();
  SafetensorsFile file(source.file);
  file.verify_if_checked();
  return file;
}

// other_choices: the new run has a different family, preset or mixer, so the old defaults are included as values.
Settings keys_of(const RunFolder& run, bool other_choices) {
  TrainConfig config = with_found_files(run.config());
  config.model = run.model_config();
  std::vector<Field> fields = fields_of(config);
  std::erase_if(fields, [&](const Field& field) {
    const bool is_default = field.is_deciding || (other_choices && field.follows_choices && field.key != kVocab);
    const bool is_free = field.key == kTokenizer && !run.tokenizer();  // imported without a tokenizer: any tokenizer of equal size fits
    return !field.is_read || is_free || !(is_default || config.given.contains(field.key));
  });
  return recorded_settings(to_yaml(fields), run.path(), fields);
}

// The model and tokenizer keys of init, without derived values.
Settings keys_of(const Source& source, bool other_choices) {
  Settings keys;
  if (source.run) {
    keys = keys_of(*source.run, other_choices);
  } else {
    const Metadata metadata = SafetensorsFile(source.file).metadata();
    keys = settings_in(metadata, "config", source.file);
    for (const Setting& each : settings_in(metadata, "following", source.file)) keys.push_back(each);
  }
  std::erase_if(keys, [](const Setting& s) { return !s.key.starts_with("model.") && s.key != kTokenizer && s.key != kChat; });
  return keys;
}

TrainConfig choices_of(const Settings& settings) {
  TrainConfig config;
  store_choices(settings, fields_of(config));
  return config;
}

}  // namespace

Settings with_init_keys(const Settings& own, const TrainConfig& choices) {
  const bool other_choices = find_setting(own, kFamily) || find_setting(own, "model.preset") || find_setting(own, "model.mixer");
  Settings all = keys_of(open_source(choices.init), other_choices);
  const bool names_other_tokenizer =
      find_setting(own, kTokenizer) && find_setting(all, kTokenizer) && choices_of(all).tokenizer != with_found_files(choices).tokenizer;
  if (names_other_tokenizer) std::erase_if(all, [](const Setting& each) { return each.key == kVocab || each.key == kChat; });
  for (Setting& each : all) {
    each.place = "init: " + choices.init;
    each.is_optional = true;
  }
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

ModelConfig planned_model(const TrainConfig& config, const std::string& file) {
  const fs::path path = "." / fs::path(file), folder = path.parent_path();
  if (path.filename() == kConfigFile && is_file(folder / "tokenizer.json")) {
    const RunFolder run = RunFolder::open(folder, RunFolder::Vocabulary::optional);
    const bool same_end = follows_tokenizer_eos(config) || run.tokenizer()->eos() == config.eos;
    if (same_end && run.config().data == config.data && run.config().tokenizer == config.tokenizer)
      return model_config(config, run.tokenizer().get());
  }
  if (config.model.vocab) return config.model;
  if (!config.init.empty())
    if (const auto kept = InitSource(config).tokenizer()) return model_config(config, kept.get());
  return model_config(config, request_of(config).tokenizer.get());
}

std::string hash_of_init(const std::string& init) { return open_weights(open_source(init)).hash(); }

InitSource::InitSource(const TrainConfig& config) {
  const Source source = open_source(config.init);
  const Settings before = keys_of(source, false);
  const TrainConfig choices = choices_of(before);
  has_other_family_ = find_setting(before, kFamily) && choices.model.family != config.model.family;
  names_other_tokenizer_ = find_setting(before, kTokenizer) ? choices.tokenizer != config.tokenizer : config.given.contains(kTokenizer);
  weights_ = std::make_shared<const SafetensorsFile>(open_weights(source));
  if (!source.run) return;
  const RunFolder& run = *source.run;
  old_tokenizer_ = run.tokenizer();
  if (!names_other_tokenizer_) kept_tokenizer_ = old_tokenizer_;
  if (!kept_tokenizer_ || is_chat(config)) return;
  if (config.eos == Eos::document) kept_tokenizer_ = with_own_eos(kept_tokenizer_);
  if (const Eos eos = kept_tokenizer_->eos(); !follows_tokenizer_eos(config) && eos != config.eos)
    fail("init: {} has eos = {}, expected {}; choose a tokenizer with this eos by tokenizer=FILE",
        {config.init, name_of(eos), name_of(config.eos)});
  if (config.chat == run.config().chat) template_ = read_template(run.path());
}

std::string InitSource::load(Model& model, const Tokenizer& tokenizer) const {
  const SafetensorsFile& file = *weights_;
  const bool fits = old_tokenizer_ ? old_tokenizer_->hash() == tokenizer.hash() : fits_tokenizer(file.metadata(), tokenizer);
  const bool other_tokens = !fits && names_other_tokenizer_, has_tokens = model.config().traits().is_language_model();
  if (!fits && !other_tokens && !old_tokenizer_)
    fail("{}: was trained with a different tokenizer than this run's; with tokenizer={}, the rows of its tokens are sampled",
        {file.path(), tokenizer.name()});
  using Rows = std::vector<std::pair<int64_t, int64_t>>;  // row indices in the new and the old table
  const Rows tokens = other_tokens && old_tokenizer_ ? match_tokens(tokenizer, *old_tokenizer_) : Rows();
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
    const int64_t width = value.size() / std::max<int64_t>(shape[0], 1);  // shape[0] is 0 for a scale without cells
    for (const auto& [now, before] : rows) std::copy_n(old.data<float>() + before * width, width, value.data<float>() + now * width);
    notes += format_message("\n  {}: {} of {} rows", {path, with_commas(std::ssize(rows)), with_commas(shape[0])});
    return value;
  });
  if (constexpr size_t most_names = 4; as_drawn.size() > most_names) notes += format_message("\n  sampled: {} tensors", {as_drawn.size()});
  else
    for (const std::string& path : as_drawn) notes += "\n  " + path + ": sampled";
  if (missing == drawn.size()) fail("{}: contains no parameter of this model", {file.path()});
  int64_t unused = 0;
  for (const std::string& name : file.names()) unused += !drawn.contains(name) && !name.starts_with(kOptimizerPrefix);
  if (unused) notes += "\n  not used: " + counted(unused, "tensor");
  return format_message("starts from {}{}", {file.path(), notes});
}

}  // namespace ricci::apps
