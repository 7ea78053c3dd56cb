// What steps of mixers take: time, memory and work against the number of positions, and each op beside the roofs of the device. In the
// order to read: mixer_step.h is the step that is measured, measure.h measures it, report.cpp tells of it; layer.h does the same for one
// layer at several scales.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/benchmark/mixer_step.h"
#include "apps/lab/report/report.h"
#include "apps/terminal/progress.h"
#include "cuda/peaks.h"
#include "cuda/trace.h"

namespace ricci::apps {

struct BenchOptions {
  std::vector<MixerKind> mixers;
  std::vector<int64_t> lengths;  // positions of a sequence
  int64_t tokens = 2048;         // of a step, in sequences of each length
  int64_t sequences = 0;         // of a step, at every length; 0: as many as hold `tokens`
  int64_t rounds = 5;
  bool roofline = false;
  StepSize size;  // but for sequences and positions
};

// The seconds of a step over the rounds.
struct Spread {
  double min = 0, lower_quartile = 0, median = 0, upper_quartile = 0, max = 0;
};
Spread spread_of(std::vector<double> seconds);

struct MixerRow {
  std::string mixer;
  int64_t positions = 0, sequences = 0, parameters = 0;
  Spread seconds;
  double flops = 0;                      // of a step: products, attention, shift-and-sum
  int64_t tensor_bytes = 0;              // most that tensors held at one time
  std::optional<int64_t> process_bytes;  // that a process on the CPU holds which does this alone, by a dry run
};

// An op over all rounds.
struct OpRow {
  std::string mixer, op;
  int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
};

struct Benchmark {
  BenchOptions options;
  std::vector<MixerRow> rows;  // by length, then by mixer
  std::vector<OpRow> ops;      // with a roofline: of the greatest length, by mixer, longest first
  std::optional<Peaks> peaks;  // with a roofline
};

// At each length all mixers take turns, a step each per round, so that what else the machine does falls on all of them.
// Errors: those of check, of MixerStep and of memory.
Benchmark measure(const BenchOptions& options, Progress& progress);
int64_t steps_of(const BenchOptions& options);  // of the progress

// Error: a size beyond its bound, heads that do not divide the width, a length that does not divide the tokens.
void check(const BenchOptions& options);

// The least time in which the work of an op can be done at the peaks.
double floor_of(const OpRow& op, const Peaks& peaks);
// The seconds of all ops of a mixer.
double seconds_of(const Benchmark& bench, const std::string& mixer);

// A row for each length and mixer; the JSON also has the ops of a roofline.
Report report_of(const Benchmark& bench);
// The ops that take a thousandth of a step or more beside the roofs, where these were measured.
Report roofline_of(const Benchmark& bench);

}  // namespace ricci::apps
