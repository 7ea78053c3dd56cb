#include "apps/shared/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/error.h"
#include "core/file.h"

namespace ricci::apps {
namespace {

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "null";
}
std::string number(const std::optional<int64_t>& value) { return value ? fmt::format("{}", *value) : "null"; }

[[noreturn]] void fail_with_reason(const std::string& path) {
  fail("cannot write {}: {}", {path, std::generic_category().message(errno)});
}

// The number of bytes up to and with the last line end.
off_t end_of_last_line(int descriptor, off_t size) {
  char letter = 0;
  while (size > 0 && ::pread(descriptor, &letter, 1, size - 1) == 1 && letter != '\n') --size;
  return size;
}

}  // namespace

std::string to_json(const Metrics& m) {
  return fmt::format(R"({{"step":{},"tokens":{},"train_loss":{},"val_loss":{},)", m.step, m.tokens,
                     number(m.train_loss), number(m.val_loss)) +
         fmt::format(R"("lr":{},"grad_norm":{},"tokens_per_s":{},"peak_bytes":{}}})", number(m.lr),
                     number(m.grad_norm), number(m.tokens_per_s), number(m.peak_bytes));
}

void drop_records_after(const std::string& path, int64_t step) {
  if (!std::filesystem::exists(path)) return;
  const std::string text = read_text(path);
  size_t kept = 0;
  for (size_t end; (end = text.find('\n', kept)) != text.npos; kept = end + 1) {
    const auto record = nlohmann::json::parse(text.begin() + static_cast<ptrdiff_t>(kept), text.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer() || record["step"].get<int64_t>() > step) break;
  }
  if (kept < text.size()) write_file_atomically(path, std::string_view(text).substr(0, kept));
}

MetricsFile::MetricsFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  struct stat status = {};
  if (descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0) {
    const off_t sound = end_of_last_line(descriptor_, status.st_size);
    if (sound == status.st_size || ::ftruncate(descriptor_, sound) == 0) return;
  }
  const int error = errno;
  if (descriptor_ >= 0) ::close(descriptor_);
  errno = error;
  fail_with_reason(path_);
}

MetricsFile::~MetricsFile() { ::close(descriptor_); }

void MetricsFile::append(const Metrics& metrics) {
  const std::string line = to_json(metrics) + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t step = ::write(descriptor_, line.data() + done, line.size() - done);
    if (step < 0 && errno != EINTR) fail_with_reason(path_);
    if (step > 0) done += static_cast<size_t>(step);
  }
}

}  // namespace ricci::apps
