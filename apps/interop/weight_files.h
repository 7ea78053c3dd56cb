// The weights in a folder that another program wrote: model.safetensors, or several files that model.safetensors.index.json lists.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/files/safetensors.h"

namespace ricci::apps {

class WeightFiles {
 public:
  // Errors: neither is there; an index that is damaged, or that names a file outside the folder or a tensor that is not in its file.
  static WeightFiles in_folder(const std::string& folder);
  explicit WeightFiles(const std::string& file);

  const std::string& path() const { return path_; }  // the folder or the file, for messages
  const std::vector<std::string>& names() const { return names_; }
  bool contains(const std::string& name) const { return where_.contains(name); }
  const SafetensorsFile& file_of(const std::string& name) const;  // error: there is no such tensor

 private:
  WeightFiles() = default;
  void add(const std::string& file);

  std::string path_;
  std::vector<SafetensorsFile> files_;
  std::vector<std::string> names_;
  std::map<std::string, size_t> where_;
};

}  // namespace ricci::apps
