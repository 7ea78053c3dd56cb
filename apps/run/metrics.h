// The measurements of a run: metrics.jsonl, one JSON object per line, and the same numbers as event files for TensorBoard (tensorboard
// --logdir runs). Lines and events are only appended; other programs read the files during the run.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/fields.h"
#include "core/files/file.h"

namespace ricci::apps {

// A value that was not measured or is not finite is null in metrics.jsonl and missing in the events.
struct Metrics {
  int64_t step = 0;
  int64_t tokens = 0;                                    // used for training so far
  std::optional<double> train_loss = {}, val_loss = {};  // nats per token
  std::optional<double> val_accuracy = {};               // a classifier's accuracy, or the fraction of exact answers
  std::optional<double> lr = {}, grad_norm = {};         // grad_norm: before clipping
  std::optional<double> tokens_per_s = {};               // in training since the previous record, without evaluations
  std::optional<int64_t> peak_bytes = {};                // peak memory of tensors on rank 0's device
  std::optional<int64_t> reserved_bytes = {};            // size of the memory pool of rank 0's GPU
  std::optional<int64_t> ranks = {};
  std::optional<double> time = {};  // seconds since 1970; set by MetricsFile
  NamedNumbers norms = {};          // StepResult::norms
};

// The keys of every record, in their order within a line. Norms follow them.
inline constexpr const char* kMetricsKeys[] = {"step", "tokens", "train_loss", "val_loss", "val_accuracy", "lr", "grad_norm",
    "tokens_per_s", "peak_bytes", "reserved_bytes", "ranks", "time"};

// {"step":1,"tokens":768,"train_loss":4.2,...}, with all keys. Numbers have enough digits to be read back exactly.
std::string to_json(const Metrics& metrics);

// Calls f with each complete line of a text, including its line end.
template <class F> void each_line(std::string_view text, const F& f) {
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) f(text.substr(begin, end + 1 - begin));
}

// This step's record in the folder's metrics.jsonl, without its time; an empty record if none exists.
Metrics read_record(const std::string& folder, int64_t step);

// Event files of TensorBoard, version brain.Event:2 (tensorflow/core/lib/io/record_writer.cc, core/util/event.proto,
// framework/summary.proto). Returns the start of a file: its version, and an event that makes TensorBoard drop the records of earlier files
// from first_step on.
std::string start_events(double time, int64_t first_step);
std::string record_event(const Metrics& metrics);
uint32_t crc32c(std::string_view bytes);  // Castagnoli, RFC 3720 section 12.1

class MetricsFile {
 public:
  // Continues after `step` (0: a new run). Removes the records of later steps and an incomplete line from metrics.jsonl. A new event file,
  // events.out.tfevents.TIME.HOST, makes TensorBoard drop the later steps. Errors, with the path and the reason: a file is unreadable or
  // cannot be written.
  MetricsFile(const std::string& folder, int64_t step);

  void append(Metrics metrics);  // error, with the path and the reason: the record cannot be written, as on a full disk
  // Must be called before a checkpoint is written, so the records up to its step survive a power failure.
  void sync() { lines_.sync(); }

 private:
  AppendFile lines_, events_;
};

}  // namespace ricci::apps
