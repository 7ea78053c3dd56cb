#include "apps/run/folder/said.h"

#include <ricci_commit.h>  // made by apps/commit.cmake

#include <algorithm>
#include <string_view>

#include "apps/run/config/builds.h"
#include "apps/run/config/config.h"
#include "apps/run/config/yaml.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

// Bytes up to the end of the last comment on top that tells a build.
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

}  // namespace

std::string build_info() {
#ifdef __clang__
  return "ricci " RICCI_VERSION ", commit " RICCI_COMMIT ", clang++ " __clang_version__;
#else
  return "ricci " RICCI_VERSION ", commit " RICCI_COMMIT ", g++ " __VERSION__;
#endif
}

void write_said(const Folder& folder, const Said& said) {
  const FilePlace place(folder, "overrides.yaml");
  std::vector<std::string> overrides = said.adds ? overrides_in(place) : std::vector<std::string>();
  overrides.insert(overrides.end(), said.overrides.begin(), said.overrides.end());
  std::string list = "# what the command line said, in its order; beside it the run file, as it was given: run.yaml\n";
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
  const std::string text = config_file_text(config, old_text, before, step);
  if (text == old_text) return;
  const bool is_edited = old_text.substr(end_of_builds(old_text)) != before;
  if (is_edited && to_yaml(config) != before) write_file_atomically({folder, "config.edited.yaml"}, old_text);
  write_file_atomically(place, text);
}

}  // namespace ricci::apps
