// Perplexity against the memory of training (Subramanian et al. 2020, figure 3), of trained runs and of run files.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/analysis/report.h"
#include "apps/run/config/train_config.h"
#include "models/planning/plan.h"

namespace ricci::apps {

struct MemoryOptions {
  std::vector<std::string> runs;          // run folders and run files; a run file has no perplexity
  int64_t batch = 0;                      // sequences of a step; 0: as in each run
  uint64_t measured = uint64_t{2} << 30;  // bytes: a step that holds more by its plan is not taken, and its memory is that of the plan
  bool evaluate = false;                  // compute the loss of the last checkpoint over the validation text, in place of the recorded one
};

struct MemoryRow {
  std::string name, family;
  StepMemory memory;
  bool is_planned = false;
  std::optional<double> loss;  // nats per token
  std::string loss_from;       // "best of metrics.jsonl"
};

// The memory of a step of the config: measured where it fits, else planned.
MemoryRow memory_row(const std::string& name, const TrainConfig& config, const MemoryOptions& options);

// Errors: those of RunFolder::open, load_config and plan_step.
Report analyse_memory(const MemoryOptions& options);

}  // namespace ricci::apps
