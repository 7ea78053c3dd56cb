// Event files of TensorBoard, version brain.Event:2: scalars by step, and the hyper-parameters of the run.
// Sources: tensorflow/core/lib/io/record_writer.cc (framing), tensorflow/core/util/event.proto, framework/summary.proto.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/fields.h"
#include "core/files/folder.h"

namespace ricci::apps {

// A file that grows at its end while others read it: logs of a run.
class AppendFile {
 public:
  enum class Old { keep, refuse };  // what to do with a file that is there already
  // Opens to append, makes the file if there is none. Error: names the path and the reason; something else than a regular
  // file is in its place.
  explicit AppendFile(const FilePlace& place, Old old = Old::keep) : path_(place.path) {
    const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (old == Old::refuse ? O_EXCL : 0);
    int opened;
    do opened = ::openat(place.folder ? place.folder->descriptor() : AT_FDCWD, place.name.c_str(), flags, 0666);
    while (opened < 0 && errno == EINTR);
    file_ = Descriptor(opened);
    struct stat status = {};
    if (!file_ || ::fstat(file_.get(), &status) != 0) fail_with_reason();
    if (!S_ISREG(status.st_mode)) fail("cannot write {}: it exists and is not a regular file", {path_});
    if (place.folder) place.folder->sync();  // a file that is new keeps its name after a power loss
  }

  const std::string& path() const { return path_; }
  // Handed to the system when this returns. Error: names the path and the reason, such as a full disk.
  void append(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t step = ::write(file_.get(), bytes.data(), bytes.size());
      if (step < 0 && errno != EINTR) fail_with_reason();
      if (step > 0) bytes.remove_prefix(static_cast<size_t>(step));
    }
  }
  // Waits until everything appended is on the disk. Error: names the path and the reason.
  void sync() {
    while (::fdatasync(file_.get()) != 0) {
      if (errno == EINVAL) return;  // some file systems cannot sync
      if (errno != EINTR) fail_with_reason();
    }
  }

 private:
  [[noreturn]] void fail_with_reason() const { fail("cannot write {}: {}", {path_, system_reason()}); }

  std::string path_;
  Descriptor file_;
};

struct Scalar {
  std::string_view tag;
  float value;
};

// A setting of a run, as the HPARAMS page of TensorBoard shows and compares it.
struct HyperParameter {
  std::string key;
  std::variant<bool, double, std::string> value;
};

// The keys that the run reads, except its name and the places of files: numbers and truth values as such, everything else as config.yaml
// writes it. A key that is null is left out.
std::vector<HyperParameter> hyper_parameters(const std::vector<Field>& fields);
template <class Config> std::vector<HyperParameter> hyper_parameters(Config config) { return hyper_parameters(fields_of(config)); }

// CRC-32C (Castagnoli, RFC 3720 section 12.1).
uint32_t crc32c(std::string_view bytes);

// A record of a TFRecord file: length, checksum of the length, the data, checksum of the data; little endian. The checksums
// are rotated and shifted ("masked"), as data may hold checksums itself.
std::string tfrecord(std::string_view data);

// The messages, encoded as protocol buffers. time: seconds since 1970.
std::string version_event(double time);                      // the first record of a file
std::string restart_event(double time, int64_t first_step);  // forget this step and later ones of older files
std::string scalars_event(double time, int64_t step, std::span<const Scalar> scalars);
// A summary of the hparams plugin. Its tensor is empty, and its metadata holds the parameters.
// Source: tensorboard/plugins/hparams/plugin_data.proto, summary.py.
std::string hyper_parameters_event(double time, std::span<const HyperParameter> parameters);

// FOLDER/events.out.tfevents.TIME.HOST, a new one for every start of a run: TensorBoard reads all of a folder in the order of the names.
class EventFile {
 public:
  // Begins a file that comes after those in the folder, for a run whose next step is first_step.
  // Errors: name the path and the reason.
  EventFile(const Folder& folder, double time, int64_t first_step);

  // The settings of the run, once, before its first step. TensorBoard reads only the first such record.
  void append(double time, std::span<const HyperParameter> parameters) { file_.append(tfrecord(hyper_parameters_event(time, parameters))); }

  // One record, handed to the system when this returns. Error: names the path and the reason.
  void append(double time, int64_t step, std::span<const Scalar> scalars) { file_.append(tfrecord(scalars_event(time, step, scalars))); }

  const std::string& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace ricci::apps
