// Event files of TensorBoard, version brain.Event:2: scalars by step, and the hyper-parameters of the run.
// Sources: tensorflow/core/lib/io/record_writer.cc (framing), tensorflow/core/util/event.proto, framework/summary.proto.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "apps/run/metrics/append_file.h"

namespace ricci::apps {

struct Scalar {
  std::string_view tag;
  float value;
};

// A setting of a run, as the HPARAMS page of TensorBoard shows and compares it.
struct HyperParameter {
  std::string key;
  std::variant<bool, double, std::string> value;
};

// CRC-32C (Castagnoli, RFC 3720 section 12.1).
uint32_t crc32c(std::string_view bytes);

// A record of a TFRecord file: length, checksum of the length, the data, checksum of the data; little endian. The checksums
// are rotated and shifted ("masked"), as data may hold checksums itself.
std::string tfrecord(std::string_view data);

// The messages, encoded as protocol buffers. time: seconds since 1970.
std::string version_event(double time);                      // the first record of a file
std::string restart_event(double time, int64_t first_step);  // forget this step and later ones of older files
std::string scalars_event(double time, int64_t step, std::span<const Scalar> scalars);
// A summary of the hparams plugin. Its tensor is empty: its metadata holds the parameters.
// Source: tensorboard/plugins/hparams/plugin_data.proto, summary.py.
std::string hyper_parameters_event(double time, std::span<const HyperParameter> parameters);

// FOLDER/events.out.tfevents.TIME.HOST, a new one for every start of a run: TensorBoard reads all of a folder in the order
// of their names.
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
