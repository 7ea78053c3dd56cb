// The measurements of a run, in its folder: metrics.jsonl, one JSON object per line, and the same numbers as event files for
// TensorBoard (tensorboard --logdir runs). Both are appended and readable while the run continues.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/files/file.h"

namespace ricci::apps {

// The measurements at a step. A value not measured, or not finite, is null in metrics.jsonl and absent from the events.
struct Metrics {
  int64_t step = 0;
  int64_t tokens = 0;                                    // read in training, up to here
  std::optional<double> train_loss = {}, val_loss = {};  // nats per token
  std::optional<double> val_accuracy = {};               // documents of a classifier, or exact answers
  std::optional<double> lr = {}, grad_norm = {};         // grad_norm: before clipping
  std::optional<double> tokens_per_s = {};               // in training since the record before, evaluations left out
  std::optional<int64_t> peak_bytes = {};                // by tensors on the device of rank 0
  std::optional<int64_t> reserved_bytes = {};            // that the memory pool of the GPU of rank 0 holds
  std::optional<int64_t> ranks = {};
  std::optional<double> time = {};  // seconds since 1970; MetricsFile fills it in
};

// The keys of a record, in the order of its line.
inline constexpr const char* kMetricsKeys[] = {"step", "tokens", "train_loss", "val_loss", "val_accuracy", "lr", "grad_norm",
    "tokens_per_s", "peak_bytes", "reserved_bytes", "ranks", "time"};

// {"step":1,"tokens":768,"train_loss":4.2,...}: always all keys. Numbers read back bit for bit.
std::string to_json(const Metrics& metrics);

// f(line) for the whole lines of a text, with their ends.
template <class F> void each_line(std::string_view text, const F& f) {
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) f(text.substr(begin, end + 1 - begin));
}

// The record of that step in metrics.jsonl of the folder, without its time. A record without values if there is none.
Metrics read_record(const std::string& folder, int64_t step);

// Event files of TensorBoard, version brain.Event:2 (tensorflow/core/lib/io/record_writer.cc, core/util/event.proto,
// framework/summary.proto). The first events of a file: the version, and that the files before it end before first_step. Then one for each
// record.
std::string start_events(double time, int64_t first_step);
std::string record_event(const Metrics& metrics);
uint32_t crc32c(std::string_view bytes);  // Castagnoli, RFC 3720 section 12.1

class MetricsFile {
 public:
  // Opens the records of the run in `folder` to continue after `step` (0 for a new run). Records of later
  // steps, which a run wrote after its last checkpoint, are dropped from metrics.jsonl, as a whole or not at all, and so is
  // a line that a crash broke. A new event file begins, which makes TensorBoard forget the later steps: events.out.tfevents.TIME.HOST,
  // after the others by name, because TensorBoard reads all of a folder in the order of the names. Errors: name the path and the reason.
  MetricsFile(const std::string& folder, int64_t step);

  // One record, handed to the system when this returns. Error: names the path and the reason, such as a full disk.
  void append(Metrics metrics);

  // To be called before a checkpoint is written: then the records reach as far as it does, even when the power fails.
  void sync() { lines_.sync(); }

 private:
  AppendFile lines_, events_;
};

}  // namespace ricci::apps
