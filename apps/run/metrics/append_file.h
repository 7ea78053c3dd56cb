// A file that grows at its end while others read it: logs of a run.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/files/folder.h"

namespace ricci::apps {

class AppendFile {
 public:
  enum class Old { keep, refuse };  // what to do with a file that is there already
  // Opens to append, makes the file if there is none. Error: names the path and the reason; something else than a regular
  // file is in its place.
  explicit AppendFile(const FilePlace& place, Old old = Old::keep);

  const std::string& path() const { return path_; }
  // Handed to the system when this returns. Error: names the path and the reason, such as a full disk.
  void append(std::string_view bytes);
  // Waits until everything appended is on the disk. Error: names the path and the reason.
  void sync();

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace ricci::apps
