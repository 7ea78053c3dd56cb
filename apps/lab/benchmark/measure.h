// Costs of steps of mixers: time, memory and work against the length of sequences, and each op beside the roofs of the device. With
// scales the benchmark measures one layer instead (Subramanian et al. 2020, figure 2): at scale s the layer has a position for every s
// tokens; measured are the forward's time and the memory kept for the backward. In the order to read: mixer_step.h is the step that is
// measured, measure.h measures it, report.cpp reports; rungs.h measures the ladders of ops.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/benchmark/mixer_step.h"
#include "apps/lab/report/report.h"
#include "apps/lab/report/statistics.h"
#include "apps/terminal/progress.h"
#include "core/fields.h"
#include "cuda/peaks.h"
#include "cuda/trace.h"

namespace ricci::apps {

struct BenchOptions {
  std::vector<MixerKind> mixers;
  std::vector<int64_t> lengths = {128, 256, 512, 1024, 2048};
  std::vector<int64_t> scales = {};  // if given, one pre-norm layer as in GPT-2 is measured at these, else post-norm blocks
  int64_t tokens = 2048;
  std::optional<int64_t> sequences = {};  // by default the sequences that hold `tokens`
  int64_t rounds = 5;
  bool roofline = false;
  StepSize size = {};  // without sequences and positions

  bool is_layer() const { return !scales.empty(); }
};
inline void visit_fields(BenchOptions& o, const Fields& field) {
  field("lengths", o.lengths, "lengths of the sequences: 128,512").at_least(1);
  field("tokens", o.tokens, "tokens of a step, the same at every length").at_least(1);
  field("sequences", o.sequences, "sequences of a step, in place of --tokens").at_least(1);
  field("width", o.size.width, "width of the blocks").at_least(1);
  field("layers", o.size.layers, "post-norm blocks with a relu").at_least(1);
  field("heads", o.size.heads, "heads of mixers that have some").at_least(1);
  field("ff", o.size.feed_forward, "width of the feed-forward layers; the width if not given").at_least(1);
  field("alone", o.size.alone, "one mixer with its maps, in place of blocks");
  field("rounds", o.rounds, "steps of each mixer and length").at_least(1);
  field("roofline", o.roofline, "show how close each op is to the measured peaks of the device");
}

struct MixerRow {
  std::string mixer;
  int64_t positions = 0, sequences = 0, parameters = 0;
  Spread seconds = {};                        // per step; per forward without a tape where one layer is measured
  double flops = 0;                           // per step: products, attention, shift-and-sum
  int64_t tensor_bytes = 0;                   // most that tensors held at one time
  std::optional<int64_t> process_bytes = {};  // held by a process on the CPU which does this alone, by a dry run
  int64_t scale = 1, length = 0, kept = 0;    // one layer at a scale: tokens of a sequence, bytes that a forward keeps for its backward
};

// An op over all rounds.
struct OpRow {
  std::string mixer, op;
  int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
};

struct Benchmark {
  BenchOptions options;
  std::vector<MixerRow> rows;  // by length, then by mixer and scale
  std::vector<OpRow> ops;      // with a roofline: of the greatest length, by mixer, longest first
  std::optional<Peaks> peaks;  // with a roofline
};

// At each length all mixers or scales take turns, a step each per round, so that background load affects all equally. Lengths
// shorter than a cell of a scale have no row. Errors: as for check and MixerStep; too little memory.
Benchmark measure(const BenchOptions& options, Progress& progress);
int64_t steps_of(const BenchOptions& options);  // as Progress counts them

// Error: a size beyond its bound, heads that do not divide the width, a length that does not divide the tokens.
void check(const BenchOptions& options);

// The shortest time for the work of an op at the peaks.
double floor_of(const OpRow& op, const Peaks& peaks);
// The seconds of all ops of a mixer.
double seconds_of(const Benchmark& bench, const std::string& mixer);

// A row for each length and mixer, or scale; the JSON also has the ops of a roofline.
Report report_of(const Benchmark& bench);
// The ops that take a thousandth of a step or more beside the roofs, where these were measured.
Report roofline_of(const Benchmark& bench);

}  // namespace ricci::apps
