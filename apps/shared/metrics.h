// runs/NAME/metrics.jsonl: one JSON object per line, appended and readable while the run goes on.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace ricci::apps {

// What was measured at a step. A value not measured, or not finite, is null in the file.
struct Metrics {
  int64_t step = 0;
  int64_t tokens = 0;  // read in training, up to here
  std::optional<double> train_loss = {}, val_loss = {};  // nats per token
  std::optional<double> lr = {}, grad_norm = {};         // grad_norm: before clipping
  std::optional<double> tokens_per_s = {};
  std::optional<int64_t> peak_bytes = {};  // of tensors on the device
};

// {"step":1,"tokens":768,"train_loss":4.2,...}: always all keys, in the order above. Numbers read back bit for bit.
std::string to_json(const Metrics& metrics);

// Removes the records of steps beyond `step`, and what follows a line that is no record, from metrics.jsonl, as a whole or
// not at all. Errors: those of reading and writing; none where there is no file.
void drop_records_after(const std::string& path, int64_t step);

class MetricsFile {
 public:
  // Opens to append, makes the file if there is none. A last line that a crash cut off is removed.
  // Error: names the path and the reason.
  explicit MetricsFile(const std::string& path);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;

  // One line, handed to the system when this returns. Error: names the path and the reason, such as a full disk.
  void append(const Metrics& metrics);

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace ricci::apps
