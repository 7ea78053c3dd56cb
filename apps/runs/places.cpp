#include "apps/runs/places.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "data/text/text_source.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

std::string found(const std::string& path) {
  if (!names_data_file(path)) return path;
  try {
    return fs::absolute(find_data(path)).lexically_normal().string();
  } catch (const Error&) {  // who opens the data tells it
    return path;
  }
}

}  // namespace

std::string folder_of_runs(const TrainConfig& config) {
  if (!config.runs.empty()) return config.runs;
  const char* const folder = std::getenv("RICCI_RUNS");
  return folder && *folder ? folder : "runs";
}

std::string find_run(const std::string& path_or_name) {
  std::error_code ignored;
  if (path_or_name.empty() || path_or_name.find('/') != path_or_name.npos || fs::exists(path_or_name, ignored)) return path_or_name;
  const std::string run = folder_of_runs() + "/" + path_or_name;
  return fs::is_directory(run, ignored) ? run : path_or_name;
}

TrainConfig with_found_data(TrainConfig config) {
  for (std::vector<std::string>* paths : {&config.data, &config.validation})
    for (std::string& path : *paths) path = found(path);
  return config;
}

}  // namespace ricci::apps
