#include "apps/interop/weight_files.h"

#include <filesystem>
#include <set>

#include "apps/interop/json_file.h"
#include "core/error.h"

namespace ricci::apps {

void WeightFiles::add(const std::string& file) {
  files_.emplace_back(file);
  for (const std::string& name : files_.back().names()) {
    if (!where_.emplace(name, files_.size() - 1).second)
      fail("{}: tensor {} is in {} already", {file, one_line(name), file_of(name).path()});
    names_.push_back(name);
  }
}

WeightFiles::WeightFiles(const std::string& file) : path_(file) { add(file); }

WeightFiles WeightFiles::in_folder(const std::string& folder) {
  WeightFiles all;
  all.path_ = folder;
  const std::string single = folder + "/model.safetensors", index = single + ".index.json";
  std::error_code ignored;
  if (!std::filesystem::exists(index, ignored)) {
    all.add(single);
    return all;
  }
  const auto file_of_tensor = JsonFile(index).texts_by_name("weight_map");
  if (!file_of_tensor) fail("{}: has no weight_map", {index});
  std::set<std::string> files;
  for (const auto& [name, file] : *file_of_tensor) files.insert(file);
  for (const std::string& file : files) {
    if (file.find('/') != file.npos || file.starts_with('.')) fail("{}: '{}' is no file of this folder", {index, one_line(file)});
    all.add(folder + "/" + file);
  }
  for (const auto& [name, file] : *file_of_tensor)
    if (!all.contains(name)) fail("{}: tensor {} is not in {}", {index, one_line(name), one_line(file)});
  return all;
}

const SafetensorsFile& WeightFiles::file_of(const std::string& name) const {
  const auto found = where_.find(name);
  if (found == where_.end()) fail("{}: no tensor '{}'", {path_, one_line(name)});
  return files_[found->second];
}

}  // namespace ricci::apps
