// The places of runs, and of the files that they read.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "apps/run/run.h"
#include "core/error.h"
#include "core/files/file.h"
#include "data/text/text.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

// Without "." and "..", where that leads to the same file: past a link, ".." is another folder.
fs::path shortest(const fs::path& path) {
  std::error_code ignored;
  const fs::path normal = path.lexically_normal();
  return fs::equivalent(path, normal, ignored) ? normal : path;
}

// The place where the file is. A path that is not found, or cannot be looked at, stays as it is.
std::string found(const std::string& path) {
  try {
    const auto place = look_for_data(path);
    return place ? shortest(fs::absolute(*place)).string() : path;
  } catch (const Error&) {
    return path;
  }
}

bool is_run(const std::string& folder) { return is_there(folder + "/config.yaml") || is_there(folder + "/metrics.jsonl"); }

// The run files in the folder of this one, and those anywhere in apps/configs and where the programs are installed.
std::vector<std::string> run_files_near(const fs::path& path) {
  std::error_code fault;
  const fs::path here = path.has_parent_path() ? path.parent_path() : ".",
                 installed = fs::read_symlink("/proc/self/exe", fault).parent_path().parent_path() / "share/ricci/configs";
  std::vector<std::string> files;
  for (const fs::path& folder : {here, fs::path("apps/configs"), installed}) {
    const size_t before = files.size();
    fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, fault);
    for (; !fault && entry != fs::end(entry); entry.increment(fault)) {
      if (folder == here) entry.disable_recursion_pending();
      if (entry->path().extension() == ".yaml") files.push_back(folder == "." ? entry->path().filename() : entry->path());
    }
    std::sort(files.begin() + static_cast<int64_t>(before), files.end());
  }
  return files;
}

// "a, b and 3 more"
std::string first_of(const std::vector<std::string>& names, size_t most) {
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) list += (i ? ", " : "") + one_line(names[i]);
  return list + (names.size() > most ? format_message(" and {} more", {names.size() - most}) : "");
}

}  // namespace

std::string folder_of_runs(const TrainConfig& config) {
  if (!config.runs.empty()) return config.runs;
  const char* const folder = std::getenv("RICCI_RUNS");
  return folder && *folder ? folder : "runs";
}

std::string find_run(const std::string& path_or_name) {
  if (path_or_name.empty() || path_or_name.find('/') != path_or_name.npos) return path_or_name;
  const bool is_known = is_folder(path_or_name) ? is_run(path_or_name) : is_there(path_or_name);
  const std::string run = folder_of_runs() + "/" + path_or_name;
  return !is_known && is_folder(run) ? run : path_or_name;
}

std::string runs_note(const std::string& name) {
  if (name.find('/') != name.npos) return "";
  const std::string runs = folder_of_runs();
  std::vector<std::string> known;
  std::error_code ignored;
  for (const fs::directory_entry& each : fs::directory_iterator(runs, ignored))
    if (is_run(each.path().string())) known.push_back(each.path().filename().string());
  std::sort(known.begin(), known.end());
  return known.empty() ? "" : nearest_note(name, known) + "; " + runs + " has " + first_of(known, 10);
}

void check_run_file(const std::string& path) {
  if (path.empty() || is_there(path)) return;
  const std::string reason = system_reason();
  std::vector<std::string> files = run_files_near(path), names;
  for (const std::string& file : files) names.push_back(fs::path(file).stem().string());
  const std::string nearest = nearest_of(fs::path(path).stem().string(), names);
  std::string note = files.empty() ? "" : "; run files are " + first_of(files, 4);
  for (size_t i = names.size(); i-- > 0;)
    if (names[i] == nearest) note = "; the nearest run file is " + one_line(files[i]);
  if (path.find_first_of("/.") == path.npos) fail("{}: no such run file, and no run of this name{}{}", {path, runs_note(path), note});
  fail("cannot read {}: {}{}", {path, reason, note});
}

TrainConfig with_found_files(TrainConfig config) {
  config.init = find_run(config.init);
  for (const Field& field : fields_of(config))
    each_path(field, [](std::string& path) {
      if (!path.empty()) path = found(path);
    });
  return config;
}

}  // namespace ricci::apps
