#include "apps/run/shared_run.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "apps/terminal/cli.h"
#include "core/cpu/isa.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "cuda/device/device.h"

namespace ricci::apps {
namespace {

// Error: a rank has another value under this name than rank 0.
void compare(Ranks& ranks, const char* name, const std::string& mine) {
  const std::vector<std::string> all = ranks.from_all(mine);
  for (int r = 1; r < ranks.count(); ++r)
    if (const std::string& other = all[static_cast<size_t>(r)]; other != all[0])
      fail("{}: {} {}, {}: {}", {ranks.name(r), name, other, ranks.name(0), all[0]});
}

}  // namespace

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
  if (turn == 0) corpus = open_corpus(config, tokenizer);
  const std::string json = ranks.from_first(turn == 0 ? corpus->tokenizer->to_json() : "");
  if (turn > 0) tokenizer = tokenizer_from_json(json);
  if (turn == 1) corpus = open_corpus(config, tokenizer);
  ranks.barrier();
  if (turn == 2) corpus = open_corpus(config, tokenizer);
  ranks.barrier();
  compare(ranks, "text", fmt::format("{:016x}", corpus->hash()));
  return std::move(*corpus);
}

void compare_replicas(Ranks& ranks, Model& model, int64_t step, int64_t saved) {
  if (ranks.count() == 1) return;
  uint64_t hash = 0;
  model.each_parameter([&](const std::string&, const Parameter& p) {
    const Tensor host = to(p.value, Device::cpu);
    hash = xxh64({static_cast<const char*>(host.raw()), static_cast<size_t>(host.bytes())}, hash);
  });
  const std::vector<std::string> all = ranks.from_all(std::to_string(hash));
  for (int r = 1; r < ranks.count(); ++r)
    if (all[static_cast<size_t>(r)] != all[0])
      fail("step {}: the weights on {} are not rank 0's; nothing was saved; the last checkpoint is of step {}",
          {step, ranks.name(r), saved});
}

std::string ranks_line(const Ranks& ranks, Device device) {
  const int machines = ranks.machine_count();
  if (ranks.count() == 1) return "";
  return format_message("{} ranks on {} {}, {} by {}\n",
      {ranks.count(), machines, machines == 1 ? "machine" : "machines", name_of(device), ranks.carrier(device)});
}

}  // namespace ricci::apps
