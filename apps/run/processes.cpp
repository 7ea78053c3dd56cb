#include "apps/run/processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "apps/run/config.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/streams.h"
#include "core/cpu/isa.h"
#include "core/error.h"
#include "cuda/device/device.h"

namespace ricci::apps {
namespace {

constexpr const char* kFinished = "finished";  // sent instead of a config

std::string describe_finished(const RunFolder& run, int64_t step) {
  const char* const key = step == run.config().steps ? "steps" : "patience";
  return format_message("{}: already finished after {} steps; set a larger {}= to continue\n", {run.path(), with_commas(step), key});
}

// Throws Error if a rank's value differs from rank 0's.
void compare(Ranks& ranks, const char* name, const std::string& mine) {
  const std::vector<std::string> all = ranks.from_all(mine);
  for (int r = 1; r < ranks.count(); ++r)
    if (const std::string& other = all[static_cast<size_t>(r)]; other != all[0])
      fail("{} has {} {}, but {} has {}", {ranks.name(r), name, other, ranks.name(0), all[0]});
}

}  // namespace

std::optional<TrainConfig> share_config(Ranks& ranks, const std::optional<RunFolder>& run) {
  std::optional<int64_t> finished;
  std::string sent;
  if (run) {
    check_shared(run->config(), ranks.count());
    finished = run->finished();
    sent = finished ? kFinished : to_yaml(run->config());
  }
  sent = ranks.from_first(sent);
  if (finished) {
    run->prune();
    write_output(STDOUT_FILENO, describe_finished(*run, *finished));
  }
  if (sent == kFinished) return {};
  return run ? run->config() : recorded_config<TrainConfig>(sent, ranks.name(0));
}

void compare_builds(Ranks& ranks, Device device) {
  if (ranks.count() == 1) return;
  compare(ranks, "build", build_info());
  if (device == Device::cuda) check_gpus(ranks);
  else compare(ranks, "vector instructions (RICCI_ISA)", name_of(cpu_isa()));
}

Corpus open_in_turn(Ranks& ranks, const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
  if (ranks.count() == 1) return open_corpus(config, tokenizer);
  const int turn = ranks.rank() == 0 ? 0 : 1 + (ranks.local() > 0);
  std::optional<Corpus> corpus;
  const auto open = [&] { corpus = open_corpus(config, tokenizer); };
  if (turn == 0) open();
  const std::string json = ranks.from_first(turn == 0 ? corpus->tokenizer->to_json() : "");
  if (turn > 0) tokenizer = tokenizer_from_json(json);
  if (turn == 1) open();
  ranks.barrier();
  if (turn == 2) open();
  ranks.barrier();
  compare(ranks, "text", fmt::format("{:016x}", corpus->hash()));
  return std::move(*corpus);
}

}  // namespace ricci::apps
