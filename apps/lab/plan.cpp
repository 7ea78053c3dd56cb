// ricci-plan: what a training step of a run file takes: memory by what it is held for, and work. Nothing is computed.
//   ricci-plan run.yaml model.layers=24 batch=64 --memory 80GiB
#include "models/planning/plan.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/run/corpus/corpus.h"
#include "apps/run/corpus/micro_batches.h"
#include "apps/run/folder/run_report.h"
#include "apps/run/init/init.h"
#include "apps/terminal/cli.h"
#include "core/error.h"
#include "core/memory/memory_report.h"
#include "models/planning/published_memory.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

using json = nlohmann::ordered_json;

struct Options {
  RunOptions run;
  uint64_t memory = 0;  // bytes
  bool as_json = false, published = false;
};

// One way to compute the same step.
struct Level {
  Recompute recompute;
  Plan plan;
  int64_t sequences = 0;  // that fit into the memory asked about
};

// The largest batch. batch_invariant takes one sequence at a time: where one fits, any number does.
json largest_batch(const TrainConfig& config, const Level& level) {
  if (config.batch_invariant && level.sequences > 0) return "any";
  return level.sequences;
}

std::vector<Level> levels_of(const TrainConfig& config, int64_t memory) {
  std::vector<Level> levels;
  for (const Recompute recompute : {Recompute::none, Recompute::blocks}) {
    StepShape shape = step_shape_of(config);
    shape.recompute_blocks = recompute == Recompute::blocks;
    levels.push_back({recompute, plan_step(config.model, config.optimizer, shape)});
    if (memory) levels.back().sequences = most_sequences(config.model, config.optimizer, shape, memory);
  }
  return levels;
}

const char* described(HeldFor use) { return use == HeldFor::other ? "between ops, buffers" : name_of(use); }

json as_json(const TrainConfig& config, const Level& level, bool with_batch) {
  const Plan& plan = level.plan;
  json result{{"recompute", name_of(level.recompute)}, {"parameters", plan.parameters}, {"peak_bytes", plan.peak},
      {"working_bytes", plan.working}, {"process_bytes", plan.process}};
  for (size_t use = 0; use < plan.at_peak.size(); ++use) result["at_peak"][described(static_cast<HeldFor>(use))] = plan.at_peak[use];
  result["flops"] = plan.flops(), result["bytes_moved"] = plan.bytes();
  for (const Plan::Kept& kept : plan.kept)
    if (kept.bytes) result["kept"].push_back({{"op", kept.op}, {"place", kept.place}, {"count", kept.count}, {"bytes", kept.bytes}});
  if (with_batch) result["largest_batch"] = largest_batch(config, level);
  return result;
}

void print_memory(const Plan& plan) {
  for (size_t use = 0; use < plan.at_peak.size(); ++use)
    std::printf("  %-28s %12s\n", described(static_cast<HeldFor>(use)), show_bytes(plan.at_peak[use]).c_str());
  std::printf("  %-28s %12s\n", "peak", show_bytes(plan.peak).c_str());
  std::printf("  %-28s %12s\n", "most of activations, buffers", show_bytes(plan.working).c_str());
  if (plan.process != plan.peak) std::printf("  %-28s %12s\n", "of the whole process", show_bytes(plan.process).c_str());
}

void print_kept(const Plan& plan) {
  std::printf("\nkept from the forward of a micro-batch for its backward\n");
  for (const Plan::Kept& kept : plan.kept)
    if (kept.bytes)
      std::printf("  %4lld x %-26s %12s  %s\n", static_cast<long long>(kept.count), kept.op.c_str(), show_bytes(kept.bytes).c_str(),
          kept.place.c_str());
}

void print_levels(const TrainConfig& config, const std::vector<Level>& levels, uint64_t memory) {
  std::printf("\n%-20s %12s %14s %16s%s\n", "recompute", "peak", "GFLOP a step", "GB moved a step", memory ? "   largest batch" : "");
  for (const Level& level : levels) {
    std::printf("%-20s %12s %14.1f %16.2f", name_of(level.recompute), show_bytes(level.plan.peak).c_str(), level.plan.flops() * 1e-9,
        level.plan.bytes() * 1e-9);
    const json largest = largest_batch(config, level);
    if (memory) std::printf(" %15s", largest.is_string() ? largest.get<std::string>().c_str() : largest.dump().c_str());
    std::printf("\n");
  }
}

void print(const TrainConfig& config, const std::vector<Level>& levels, uint64_t memory) {
  const Level& chosen = levels[config.recompute == Recompute::blocks];
  const StepShape shape = step_shape_of(config);
  std::puts(format_message("{} trained parameters; a step of {} x {} sequences of {} tokens in {} on {}, recompute: {}",
      {chosen.plan.parameters, shape.micro_batches, shape.sequences, shape.context, name_of(shape.dtype), name_of(shape.device),
          name_of(chosen.recompute)})
                .c_str());
  std::printf("\nheld at the peak\n");
  print_memory(chosen.plan);
  print_kept(chosen.plan);
  print_levels(config, levels, memory);
}

// The multi-scale paper's table 8, with the scores as it counts them and as they are kept.
int print_published() {
  const auto materialised = published_memory({.scores = Scores::materialised}), fused = published_memory({.scores = Scores::fused});
  std::puts(
      "GB by the formula of the multi-scale paper's table 8: 64 sequences of 512, d = 768, 12 heads, 31,300 tokens, 2 bytes a value;\n"
      "the totals of models hold one value per position, width and layer more than the cells, as those of the paper do");
  std::printf("%-24s %7s %7s %7s %7s %7s %7s %7s %7s %8s %12s %8s %8s\n", "", "tokens", "q k v", "scores", "proj", "ff", "norms", "logits",
      "scales", "total", "with h = 12", "fused", "weights");
  size_t i = 0;
  for (const PublishedMemory& row : published_memory({})) {
    std::printf("%-24s", row.name.c_str());
    for (const double bytes : {row.embedding, row.qkv, row.scores, row.projection, row.feed_forward, row.norms, row.logits, row.hierarchy})
      std::printf(" %7.3f", bytes * 1e-9);
    std::printf(
        " %8.3f %12.3f %8.3f %8.3f\n", row.total() * 1e-9, materialised[i].total() * 1e-9, fused[i].total() * 1e-9, row.weights * 1e-9);
    ++i;
  }
  return 0;
}

int plan(const Options& options) {
  if (options.published) return print_published();
  TrainConfig config = load_config<TrainConfig>(options.run.file(), options.run.overrides(), keys_of_init);
  if (!config.model.vocab) config.model.vocab = vocab_of(config, *open_corpus(config, nullptr).tokenizer);
  print_warnings(config);
  const std::vector<Level> levels = levels_of(config, static_cast<int64_t>(options.memory));
  if (!options.as_json) return print(config, levels, options.memory), 0;
  json all = json::array();
  for (const Level& level : levels) all.push_back(as_json(config, level, options.memory > 0));
  std::puts(all.dump(1).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_app(
      argc, argv, {"ricci-plan", "What a training step of a run file takes: memory by what it is held for, and work. Nothing is computed."},
      [&](CLI::App& app) {
        add_run_options<TrainConfig>(app, options.run);
        CLI::Option* const memory = app.add_option(
            "--memory", options.memory, "Tells the largest batch that fits into it: 8GiB are 8 x 1024^3 bytes, 80GB are 80 x 10^9");
        memory->transform(CLI::AsSizeValue(true));
        CLI::Option* const as_json = app.add_flag("--json", options.as_json, "Print JSON");
        CLI::Option* const published = app.add_flag("--published", options.published,
            "Print the multi-scale paper's table 8 by its formula instead, and what becomes of it with other attentions");
        for (CLI::Option* unread : {memory, as_json, app.get_option("run")}) published->excludes(unread);
      },
      [&] { return plan(options); });
}
