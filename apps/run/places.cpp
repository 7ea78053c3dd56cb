#include "apps/run/places.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/files/file.h"
#include "core/nearest.h"
#include "data/text/text.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool is_run(const std::string& folder) { return is_there(folder + "/" + kConfigFile) || is_there(folder + "/metrics.jsonl"); }

// The run files in this path's folder, in apps/configs and in the installation.
std::vector<std::string> run_files_near(const fs::path& path) {
  std::error_code fault;
  const fs::path here = path.has_parent_path() ? path.parent_path() : ".",
                 installed = fs::read_symlink("/proc/self/exe", fault).parent_path().parent_path() / "share/ricci/configs";
  std::vector<std::string> files;
  for (const fs::path& folder : {here, fs::path("apps/configs"), installed}) {
    fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, fault);
    for (; !fault && entry != fs::end(entry); entry.increment(fault)) {
      if (folder == here) entry.disable_recursion_pending();
      if (entry->path().extension() == ".yaml") files.push_back(entry->path().lexically_normal());
    }
  }
  return files;
}

}  // namespace

std::string folder_of_runs(const TrainConfig& config) {
  if (!config.runs.empty()) return config.runs;
  const char* const folder = std::getenv("RICCI_RUNS");
  return folder && *folder ? folder : "runs";
}

std::string find_run(const std::string& path_or_name) {
  if (path_or_name.empty()) return "";
  const bool is_known =
      path_or_name.find('/') != path_or_name.npos || (is_folder(path_or_name) ? is_run(path_or_name) : is_there(path_or_name));
  const std::string run = folder_of_runs() + "/" + path_or_name, found = !is_known && is_folder(run) ? run : path_or_name;
  const fs::path folder = found.ends_with(".safetensors") ? fs::path(found).parent_path() : fs::path(found);
  std::error_code ignored;
  if (fs::is_regular_file(folder / "config.json", ignored) && !fs::is_regular_file(folder / kConfigFile, ignored))
    fail("{}: is a Hugging Face folder; ricci convert import {} NAME turns it into a run", {found, folder.string()});
  return found;
}

std::string new_run(const std::string& path_or_name) {
  return path_or_name.find('/') == path_or_name.npos ? folder_of_runs() + "/" + path_or_name : without_slashes(path_or_name);
}

std::string folder_name(const std::string& path) {
  std::error_code error;
  const fs::path found = fs::weakly_canonical(path, error);
  const std::string name = (error ? fs::path(path).lexically_normal() : found).filename().string();
  return name.empty() ? path : name;
}

std::string runs_note(const std::string& name) {
  constexpr size_t most = 10;
  if (name.find('/') != name.npos) return "";
  const std::string runs = folder_of_runs();
  std::vector<std::string> known;
  std::error_code ignored;
  for (const fs::directory_entry& each : fs::directory_iterator(runs, ignored))
    if (is_run(each.path().string())) known.push_back(each.path().filename().string());
  if (known.empty()) return "";
  std::sort(known.begin(), known.end());
  std::string list;
  for (size_t i = 0; i < std::min(known.size(), most); ++i) list += (i ? ", " : "") + one_line(known[i]);
  if (known.size() > most) list += format_message(" and {} more", {known.size() - most});
  return nearest_note(name, known) + "; " + runs + " has " + list;
}

std::string NamedWeights::text() const {
  if (!file.empty()) return file;
  return is_last() ? run : run + "@" + which;
}

std::string NamedWeights::label() const {
  if (run.empty()) return text();
  return folder_name(run) + (file.empty() ? text().substr(run.size()) : "/" + fs::path(file).lexically_relative(run).string());
}

NamedWeights find_weights(const std::string& name) {
  if (name.empty()) return {};
  const std::string found = without_slashes(find_run(name));
  if (is_folder(found)) return {.run = found};
  if (found.ends_with(".safetensors")) {
    const fs::path folder = fs::path(found).parent_path(), run = folder.filename() == "checkpoints" ? folder.parent_path() : folder;
    if (is_file(run / kConfigFile)) return {.run = run.empty() ? "." : run, .file = found};
  }
  if (is_there(found)) return {.file = found};
  const size_t sign = found.rfind('@');
  if (sign == found.npos || found.find('/', sign) != found.npos) return {.run = found};
  return {.run = without_slashes(find_run(found.substr(0, sign))), .which = found.substr(sign + 1)};
}

std::string find_run_file(const NamedWeights& named) {
  const std::string& path = named.run;
  if (path.empty()) return named.file;
  if (is_folder(path)) return path + "/" + kConfigFile;
  const std::string reason = system_reason();
  const std::vector<std::string> files = run_files_near(path);
  std::vector<std::string> names;
  for (const std::string& file : files) names.push_back(fs::path(file).stem().string());
  const std::string nearest = nearest_of(fs::path(path).stem().string(), names);
  std::string note;
  for (size_t i = names.size(); i-- > 0;)
    if (names[i] == nearest) note = "; the nearest run file is " + one_line(files[i]);
  if (path.find_first_of("/.") == path.npos) fail("{}: no such run file, and no run of this name{}{}", {path, runs_note(path), note});
  fail("cannot read {}: {}{}", {path, reason, note});
}

TrainConfig with_found_files(TrainConfig config) {
  const auto find = [](std::string& path) {
    std::error_code ignored;
    const auto place = path.empty() ? std::nullopt : look_for_data(path);
    if (!place) return;
    const fs::path full = fs::absolute(*place), normal = full.lexically_normal();
    path = (fs::equivalent(full, normal, ignored) ? normal : full).string();  // after a link, ".." leads to a different folder
  };
  NamedWeights init = find_weights(config.init);
  find(init.run);
  config.init = init.text();
  for (const Field& field : fields_of(config)) each_path(field, find);
  return config;
}

}  // namespace ricci::apps
