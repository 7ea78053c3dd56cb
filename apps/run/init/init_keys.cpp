#include "apps/run/init/init_keys.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "apps/run/config/config.h"
#include "apps/run/config/nearest.h"
#include "apps/run/folder/places.h"
#include "core/error.h"
#include "core/files/safetensors.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char *kTokenizer = "tokenizer", *kVocab = "model.vocab", *kDropout = "model.dropout";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// What a model is: its own keys, and how text becomes the ids that it reads.
bool says_what_a_model_is(const std::string& key) { return key.starts_with("model.") || key == kTokenizer; }

std::map<std::string, std::string> model_values(TrainConfig config) {
  std::map<std::string, std::string> values;
  for (const Field& field : fields_of(config))
    if (field.info.is_read && says_what_a_model_is(field.key)) values[field.key] = value_text(field);
  return values;
}

// Lines "key: value", as provenance writes them (apps/run/folder/provenance.h).
std::map<std::string, std::string> values_in(const Metadata& metadata) {
  std::map<std::string, std::string> values;
  const auto config = metadata.find("config");
  std::istringstream lines(config == metadata.end() ? "" : config->second);
  for (std::string line; std::getline(lines, line);)
    if (const size_t colon = line.find(": "); colon != line.npos && says_what_a_model_is(line.substr(0, colon)))
      values[line.substr(0, colon)] = line.substr(colon + 2);
  return values;
}

// Error: `levels` of a Dispatcher is null, and the context of this run needs another number than that of `init`, whose coefficients are for
// as many levels as it has.
void check_levels(const TrainConfig& config, const std::map<std::string, std::string>& before) {
  const auto levels = before.find("model.levels"), ctx = before.find("model.ctx");
  if (levels == before.end() || levels->second != "null" || ctx == before.end()) return;
  if (config.model.mixer != kind_of<Dispatcher> || config.model.of<Dispatcher>().levels) return;
  const int64_t had = DispatcherConfig::levels_for(std::min<int64_t>(std::stoll(ctx->second), kLargestSize)),
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

}  // namespace

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

std::map<std::string, std::string> told_by_init(const std::string& init) {
  const InitPlace place = init_place(init);
  if (!place.file.empty()) return values_in(SafetensorsFile(place.file).metadata());
  std::error_code ignored;
  if (!fs::exists(place.run, ignored)) fail("init: there is neither a run folder nor a file {}", {one_line(init, 200)});
  std::map<std::string, std::string> values = model_values(with_found_files(load_config<TrainConfig>(place.run + "/config.yaml")));
  if (!is_file(place.run + "/tokenizer.json")) values.erase(kTokenizer);  // imported without one: any with as many tokens fits
  return values;
}

bool lists_change(const TrainConfig& config, const std::string& key) {
  return std::find(config.init_changes.begin(), config.init_changes.end(), key) != config.init_changes.end();
}

std::vector<std::string> keys_of_init(const TrainConfig& config) {
  std::vector<std::string> assignments;
  if (config.init.empty()) return assignments;
  const bool other_tokenizer = lists_change(config, kTokenizer);
  for (const auto& [key, value] : told_by_init(config.init))
    if (!other_tokenizer || (key != kTokenizer && key != kVocab)) assignments.push_back(key + "=" + value);
  return assignments;
}

void check_changes(const TrainConfig& config) {
  const std::map<std::string, std::string> before = told_by_init(config.init), now = model_values(config);
  std::vector<std::string> known;
  for (const auto& [key, value] : now) known.push_back(key);
  for (const auto& [key, value] : before) known.push_back(key);
  for (const std::string& key : config.init_changes)
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail("init_changes: '{}' is no key of this model{}", {one_line(key), nearest_note(key, known)});
  for (const auto& [key, value] : before) {
    const auto found = now.find(key);
    const bool follows = key == kDropout || (key == kVocab && lists_change(config, kTokenizer));
    if (follows || lists_change(config, key) || (found != now.end() && found->second == value)) continue;
    if (found == now.end() && lists_change(config, "model.family")) continue;  // the other family has no such key
    fail("init: {} has {}: {}, not {}; init_changes: [{}] allows that",
        {config.init, key, value, found == now.end() ? "none" : found->second, key});
  }
  check_levels(config, before);
}

}  // namespace ricci::apps
