// Ladders of ops: the time of each rung, from the definition to the fast kernel, at one size. The last lines of the ops' headers
// (ops/attention/attention.h, cuda/gemm/gemm.h, ...) list the rungs and what each gains.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/lab/report/report.h"
#include "apps/terminal/progress.h"
#include "core/choice.h"
#include "cuda/peaks.h"

namespace ricci::apps {

enum class LadderKind : uint8_t { attention, gemm, gemm_row, shift_and_sum, layer_norm };
constexpr auto choices(LadderKind) { return std::array{"attention", "gemm", "gemm_row", "shift_and_sum", "layer_norm"}; }

struct LadderOptions {
  std::vector<LadderKind> ladders;
  int64_t tokens = 2048, width = 256, heads = 4;
  int64_t rounds = 5;  // the shortest counts
  Device device = Device::cpu;
};

struct Rung {
  std::string file;
  Dtype dtype;
  std::function<void()> run;
  double seconds = 0;  // the shortest
};

struct Ladder {
  LadderKind kind;
  std::string size;           // in words
  double flops = 0, numbers;  // the work of the op: the numbers that it must read and write
  std::vector<Rung> rungs = {};
};

// The rungs that this machine has, in order, ready to run: forward, with random inputs and without a tape.
Ladder ladder_of(LadderKind kind, const LadderOptions& options);

struct LadderTimes {
  std::vector<Ladder> ladders;
  std::map<Dtype, Peaks> peaks;
};
// The rungs of a ladder take turns, once per round. Error: a device that is not available; too little memory.
LadderTimes measure(const LadderOptions& options, Progress& progress);
int64_t steps_of(const LadderOptions& options);  // as Progress counts them: ladders

// The shortest time for the op in the dtype of a rung.
double floor_of(const Ladder& ladder, const Rung& rung, const Peaks& peaks);

// A table for each ladder, and the JSON of all.
std::vector<Report> reports_of(const LadderTimes& times);
Json json_of(const LadderTimes& times);

}  // namespace ricci::apps
