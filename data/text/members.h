// The files inside a text: the members of a tar archive, compressed or not, one after the other; any other file is its only member.
// A tar archive is known by its content.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "data/text/text_stream.h"

namespace ricci {

// Whether a file (TextSource::each_file) is a tar archive. Errors: those of reading its start.
bool is_archive(const TextSource& file);

class MemberStream {
 public:
  // One file (TextSource::each_file).
  explicit MemberStream(const TextSource& file);
  ~MemberStream();
  MemberStream(const MemberStream&) = delete;

  // Goes to the next member that is a regular file, neither hidden nor in a hidden folder; false at the end. Error: a damaged or cut
  // archive.
  bool next_member();
  // "corpus.txt", or "corpus.tar: a/b.txt"
  const std::string& name() const { return name_; }
  // The next block of the member, valid until the next call; empty at its end.
  std::string_view next();

  int64_t bytes_of_files() const { return stream_.bytes_of_files(); }

 private:
  struct Tar;
  std::string file_name_, name_;
  TextStream stream_;
  int64_t bytes_on_disk_;
  std::string first_;  // what was read of the file to recognise it
  bool started_ = false, first_given_ = false;
  std::unique_ptr<Tar> tar_;
};

}  // namespace ricci
