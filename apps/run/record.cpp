#include "apps/run/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "apps/terminal/cli.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

// Bytes up to the end of the last comment on top that names a build.
size_t end_of_builds(std::string_view text) {
  size_t end = 0, position = 0;
  for (const std::string_view line : comments_on_top(text)) {
    position = std::min(position + line.size() + 1, text.size());
    if (tells_build(line)) end = position;
  }
  return end;
}

std::vector<std::string> overrides_in(const FilePlace& place) {
  std::vector<std::string> overrides;
  if (!OpenFile::find(place)) return overrides;
  for (const YamlValue& value : parse_yaml(read_text(place, kMaxYaml), place.path, true).items) {
    if (value.kind != YamlValue::Kind::text) fail("{}: expected a list of texts", {place.path});
    overrides.push_back(value.text);
  }
  return overrides;
}

void replace_file(const FilePlace& place, const std::optional<std::string>& text) {
  const bool is_there = OpenFile::find(place).has_value();
  if (!text && is_there) remove_file(place);
  if (text && !(is_there && read_text(place) == *text)) write_file_atomically(place, *text);
}

std::string without_removed_key(std::string text) {
  const size_t line = text.find(format_message("\n{}: ", {kRemovedKey}));
  return line == text.npos ? text : text.erase(line, text.find('\n', line + 1) - line);
}

// ---- Models and checkpoints
constexpr const char *kConfigLines = "config", *kFollowing = "following", *kTokenizerHash = "tokenizer";

bool shapes_model(const std::string& key) { return key.starts_with("model.") || key == "context"; }

// Metadata are UTF-8, paths may not be.
std::string ascii(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += static_cast<unsigned char>(c) < 128 ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return result;
}

// The values that count, by key. A run file may leave the size of the vocabulary to the tokenizer.
TextsByKey values_of(TrainConfig config, const Tokenizer* tokenizer, Compare what) {
  if (tokenizer) config.model.vocab = std::max(config.model.vocab, tokenizer->vocab_size());
  TextsByKey values;
  for (const Field& field : fields_of(config))
    if (field.is_read && !field.is_free && (what == Compare::training || shapes_model(field.key)))
      values[field.key] = ascii(value_text(field));
  return values;
}

// A model that came without a tokenizer: any may be put beside it.
constexpr const char* kAnyTokenizer = "any";

std::string hash_of(const Tokenizer* tokenizer) { return tokenizer ? fmt::format("{:016x}", tokenizer->hash()) : kAnyTokenizer; }

}  // namespace

void write_said(const Folder& folder, const Said& said) {
  const FilePlace place(folder, "overrides.yaml");
  std::vector<std::string> overrides = said.adds ? overrides_in(place) : std::vector<std::string>();
  overrides.insert(overrides.end(), said.overrides.begin(), said.overrides.end());
  std::string list = "# the keys of the command line, in its order; beside it the run file, as it was given: run.yaml\n";
  for (const std::string& each : overrides) list += "- " + yaml_text(each) + "\n";
  if (!said.adds) replace_file({folder, "run.yaml"}, said.run_file);
  replace_file(place, overrides.empty() ? std::nullopt : std::optional(list));
}

std::string config_file_text(const TrainConfig& config, const std::string& old_text, const std::string& before, int64_t step) {
  const std::string build = format_message("{}, device {} ({}), threads {}, seed {}",
      {build_info(), name_of(config.device), name_of(cpu_isa()), thread_count(), std::to_string(config.seed)});
  const size_t end = end_of_builds(old_text);
  std::string head = old_text.substr(0, end);
  if (head.empty()) head = "# " + build + "\n";
  else if (!head.ends_with(" " + build + "\n")) head += format_message("# after step {}: {}\n", {step, build});
  const std::string keys = to_yaml(config);
  return head + (keys == before ? old_text.substr(end) : keys);
}

void write_config(const Folder& folder, const TrainConfig& config, const std::string& before, int64_t step) {
  const FilePlace place(folder, "config.yaml");
  const std::string old_text = before.empty() ? "" : read_text(place);
  const std::string still_read = without_removed_key(old_text), text = config_file_text(config, still_read, before, step);
  if (text == old_text) return;
  const bool is_edited = still_read.substr(end_of_builds(still_read)) != before;
  if (is_edited && to_yaml(config) != before) write_file_atomically({folder, "config.edited.yaml"}, old_text);
  write_file_atomically(place, text);
}

Metadata provenance(const TrainConfig& config, const Tokenizer* tokenizer, Compare what) {
  std::string lines;
  for (const auto& [key, value] : values_of(config, tokenizer, what)) lines += key + ": " + value + "\n";
  std::string following;
  for (const auto& [key, said] : config.following)
    if (shapes_model(key)) following += key + ": " + said + "\n";
  return {{kConfigLines, lines}, {kFollowing, following}, {kTokenizerHash, hash_of(tokenizer)}};
}

TextsByKey lines_in(const Metadata& metadata, const char* name) {
  TextsByKey all;
  const auto found = metadata.find(name);
  std::istringstream lines(found == metadata.end() ? "" : found->second);
  for (std::string line; std::getline(lines, line);)
    if (const size_t colon = line.find(": "); colon != line.npos) all[line.substr(0, colon)] = line.substr(colon + 2);
  return all;
}

bool fits_tokenizer(const SafetensorsFile& file, const Tokenizer& tokenizer) {
  const auto told = file.metadata().find(kTokenizerHash);
  return told == file.metadata().end() || told->second == kAnyTokenizer || told->second == hash_of(&tokenizer);
}

void check_provenance(const SafetensorsFile& file, const TrainConfig& config, const Tokenizer* tokenizer, Compare what,
    const std::function<void(const std::string&)>& warn) {
  if (!file.metadata().contains(kConfigLines) || !file.metadata().contains(kTokenizerHash))
    return warn(format_message(
        "{}: it does not name what it was trained with; the config and the tokenizer beside it are believed", {file.path()}));
  TextsByKey now = values_of(config, tokenizer, what);
  // A file may be named by another path than before. What matters about it is compared by its contents.
  TrainConfig copy = config;
  for (const Field& field : fields_of(copy))
    if (field.names_file) now.erase(field.key);
  for (const auto& [key, then] : lines_in(file.metadata(), kConfigLines)) {
    const auto found = now.find(key);  // missing if the key does not count here, or no longer exists
    if (found != now.end() && then != found->second)
      fail("{}: it was trained with {}: {}, not {}", {file.path(), key, then, found->second});
  }
  if (tokenizer && !fits_tokenizer(file, *tokenizer))
    fail("{}: it was trained with another tokenizer than the one beside it", {file.path()});
}

}  // namespace ricci::apps
