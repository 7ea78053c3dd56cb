#include "apps/runs/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace ricci::apps {
namespace {

[[noreturn]] void fail_with_reason(const std::string& path) { fail("cannot write {}: {}", {path, std::generic_category().message(errno)}); }

}  // namespace

AppendFile::AppendFile(const std::string& path, Old old)
    : path_(path), descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (old == Old::refuse ? O_EXCL : 0), 0666)) {
  if (descriptor_ < 0) fail_with_reason(path_);
}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t step = ::write(descriptor_, bytes.data(), bytes.size());
    if (step < 0 && errno != EINTR) fail_with_reason(path_);
    if (step > 0) bytes.remove_prefix(static_cast<size_t>(step));
  }
}

void AppendFile::sync() {
  // Some file systems cannot sync and say EINVAL.
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL) fail_with_reason(path_);
}

}  // namespace ricci::apps
