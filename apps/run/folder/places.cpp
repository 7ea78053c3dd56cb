#include "apps/run/folder/places.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "apps/run/config/config.h"
#include "core/error.h"
#include "data/text/text.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

// Without "." and "..", where that leads to the same file: behind a link, ".." is another folder.
fs::path shortest(const fs::path& path) {
  std::error_code ignored;
  const fs::path normal = path.lexically_normal();
  return fs::equivalent(path, normal, ignored) ? normal : path;
}

std::string found(const std::string& path) {
  try {
    return shortest(fs::absolute(find_data(path))).string();
  } catch (const Error&) {  // who opens the file tells it
    return path;
  }
}

bool is_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "config.yaml", ignored) || fs::exists(folder / "metrics.jsonl", ignored);
}

}  // namespace

std::string folder_of_runs(const TrainConfig& config) {
  if (!config.runs.empty()) return config.runs;
  const char* const folder = std::getenv("RICCI_RUNS");
  return folder && *folder ? folder : "runs";
}

std::string find_run(const std::string& path_or_name) {
  std::error_code ignored;
  if (path_or_name.empty() || path_or_name.find('/') != path_or_name.npos) return path_or_name;
  const bool is_there = fs::is_directory(path_or_name, ignored) ? is_run(path_or_name) : fs::exists(path_or_name, ignored);
  const std::string run = folder_of_runs() + "/" + path_or_name;
  return !is_there && fs::is_directory(run, ignored) ? run : path_or_name;
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
