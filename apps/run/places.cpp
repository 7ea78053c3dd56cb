#include "apps/run/places.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "apps/run/config.h"
#include "apps/terminal/nearest.h"
#include "core/error.h"
#include "core/files/file.h"
#include "data/text/text.h"

namespace ricci::apps {
namespace {

constexpr const char* kIdFile = "run_id";
constexpr int64_t kMaxId = 100;  // bytes

namespace fs = std::filesystem;

// Without "." and "..", where that leads to the same file: past a link, ".." is another folder.
fs::path shortest(const fs::path& path) {
  std::error_code ignored;
  const fs::path normal = path.lexically_normal();
  return fs::equivalent(path, normal, ignored) ? normal : path;
}

std::string found(const std::string& path) {
  const auto place = look_for_data(path);
  return place ? shortest(fs::absolute(*place)).string() : path;
}

bool is_run(const std::string& folder) { return is_there(folder + "/config.yaml") || is_there(folder + "/metrics.jsonl"); }

// A list of runs locks each for a moment, to see whether a process has it.
bool lock_patiently(const Folder& folder) {
  for (int i = 0; i < 10; ++i) {
    if (folder.lock()) return true;
    ::usleep(10'000);
  }
  return false;
}

// Adds the run files of a folder, with their path from it, and of the folders inside where these are asked for, too.
void add_run_files(std::vector<fs::path>& files, const fs::path& folder, bool with_inner) {
  std::vector<fs::path> found;
  std::error_code fault;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, fault);
  for (; !fault && entry != fs::end(entry); entry.increment(fault)) {
    if (!with_inner) entry.disable_recursion_pending();
    if (entry->path().extension() == ".yaml") found.push_back(folder == "." ? entry->path().filename() : entry->path());
  }
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
}

std::vector<std::string> run_files_beside(const fs::path& path) {
  std::vector<fs::path> files;
  std::error_code ignored;
  const fs::path installed = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() / "share/ricci/configs";
  add_run_files(files, path.has_parent_path() ? path.parent_path() : ".", false);
  for (const fs::path& configs : {fs::path("apps/configs"), installed}) add_run_files(files, configs, true);
  return {files.begin(), files.end()};
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
  constexpr size_t most = 10;
  if (name.find('/') != name.npos) return "";
  const std::string runs = folder_of_runs();
  std::vector<std::string> known;
  std::error_code ignored;
  for (const fs::directory_entry& each : fs::directory_iterator(runs, ignored))
    if (is_run(each.path().string())) known.push_back(each.path().filename().string());
  if (known.empty()) return "";
  std::sort(known.begin(), known.end());
  std::string note = nearest_note(name, known) + "; " + runs + " has ";
  for (size_t i = 0; i < std::min(known.size(), most); ++i) note += (i ? ", " : "") + one_line(known[i]);
  return note + (known.size() > most ? format_message(" and {} more", {known.size() - most}) : "");
}

void check_run_file(const std::string& path) {
  constexpr size_t most = 4;
  if (path.empty() || is_there(path)) return;
  const std::string reason = system_reason();
  const bool is_name = path.find_first_of("/.") == path.npos;
  const std::vector<std::string> files = run_files_beside(path);
  std::vector<std::string> names;
  for (const std::string& file : files) names.push_back(fs::path(file).stem().string());
  const auto found = std::find(names.begin(), names.end(), nearest_of(fs::path(path).stem().string(), names));
  std::string note;
  if (found != names.end()) note = "; the nearest run file is " + one_line(files[static_cast<size_t>(found - names.begin())]);
  else
    for (size_t i = 0; i < files.size() && i < most; ++i) note += (i ? ", " : "; run files are ") + one_line(files[i]);
  if (found == names.end() && files.size() > most) note += format_message(" and {} more", {files.size() - most});
  if (is_name) fail("{}: no such run file, and no run of this name{}{}", {path, runs_note(path), note});
  fail("cannot read {}: {}{}", {path, reason, note});
}

TrainConfig with_found_files(TrainConfig config, FilesOf whose) {
  const auto guarded = [&](const std::function<void()>& find) {
    try {
      find();
    } catch (const Error&) {
      if (whose == FilesOf::request) throw;
    }
  };
  guarded([&] { config.init = find_run(config.init); });
  const auto look = [&](std::string& path) {
    guarded([&] {
      if (!path.empty()) path = found(path);
    });
  };
  for (const Field& field : fields_of(config)) each_path(field, look);
  return config;
}

RunLock::RunLock(const std::string& path) : made_(make_folders(path)), folder_(path) {
  if (!lock_patiently(folder_)) fail("{}: another ricci-train is at work in it", {path});
}

RunLock::~RunLock() {
  if (!id_.empty()) return;
  for (auto path = made_.rbegin(); path != made_.rend(); ++path) ::rmdir(path->c_str());  // one that holds something stays
}

void RunLock::begin() {
  const FilePlace place(folder_, kIdFile);
  if (OpenFile::find(place)) id_ = read_text(place, kMaxId);
  if (!id_.empty()) return;
  id_ = random_digits() + random_digits() + "\n";
  write_file_atomically(place, id_);
}

void RunLock::check() const {
  const std::string& path = folder_.path();
  if (folder_.removed()) fail("{}: the folder was removed while this run was at work in it", {path});
  const FilePlace place(folder_, kIdFile);
  if (!OpenFile::find(place) || read_text(place, kMaxId) != id_)
    fail("{}: its files were removed or replaced while this run was at work in it", {path});
}

}  // namespace ricci::apps
