#include "apps/run/training/shared_run.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "apps/run/config/config.h"
#include "apps/run/corpus/micro_batches.h"
#include "apps/terminal/cli.h"
#include "core/cpu/isa.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "cuda/device/device.h"
#include "cuda/device/gpus.h"
#include "cuda/ranks/device_ranks.h"

namespace ricci::apps {
namespace {

// The value of each rank under this name. Error: a rank has another than rank 0.
void compare(Ranks& ranks, const char* what, const std::string& mine) {
  const std::vector<std::string> all = ranks.from_all(mine);
  for (int r = 1; r < ranks.count(); ++r)
    if (all[static_cast<size_t>(r)] != all[0])
      fail("{}: {} {}, {}: {}", {ranks.name(r), what, all[static_cast<size_t>(r)], ranks.name(0), all[0]});
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

uint64_t hash_of(const Tensor& tensor) {
  const Tensor host = to(tensor, Device::cpu);
  return xxh64({static_cast<const char*>(host.raw()), static_cast<size_t>(host.bytes())});
}

}  // namespace

std::string from_first(Ranks& ranks, const std::function<std::string()>& f) {
  const std::string text = ranks.rank() == 0 ? f() : "";
  ranks.wait_for_first();
  return ranks.from_first(text);
}

std::string text_of(const TrainConfig& config) {
  TrainConfig copy = config;
  std::string text;
  for (const auto& [key, value] : value_texts(fields_of(copy))) text += key + "=" + value + "\n";
  return text;
}

TrainConfig config_of(const std::string& text) { return load_config<TrainConfig>("", lines_of(text)); }

Share share_of(const TrainConfig& config, const Ranks& ranks) {
  return Share::of_rank(layout_of(config).micro_batches, config.max_ranks.value_or(1), ranks.rank(), ranks.count());
}

void compare_builds(Ranks& ranks, Device device) {
  compare(ranks, "build", build_info());
  if (device == Device::cuda && ranks.count() > 1) {
    const std::string warning = about_gpus(ranks, ranks.from_all(gpu_in_use()));
    if (!warning.empty() && ranks.rank() == 0) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
  const std::vector<std::string> all = ranks.from_all(name_of(cpu_isa()));
  for (int r = 1; r < ranks.count() && ranks.rank() == 0; ++r)
    if (const std::string& theirs = all[static_cast<size_t>(r)]; theirs != all[0]) {
      std::fprintf(stderr, "warning: %s computes with %s, %s with %s: the bits of a run depend on which rank computes what\n",
          ranks.name(r).c_str(), theirs.c_str(), ranks.name(0).c_str(), all[0].c_str());
      return;
    }
}

Corpus open_in_turn(Ranks& ranks, const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
  if (ranks.count() == 1) return open_corpus(config, tokenizer);
  std::optional<Corpus> corpus;
  const auto open_if = [&](bool is_my_turn) {
    if (is_my_turn) corpus = open_corpus(config, tokenizer);
  };
  const bool is_first = ranks.rank() == 0, is_first_here = ranks.local() == 0;
  const std::string json = from_first(ranks, [&] {
    open_if(true);
    return corpus->tokenizer->to_json();
  });
  if (!is_first) tokenizer = tokenizer_from_json(json);
  open_if(is_first_here && !is_first);
  ranks.wait_patiently();
  open_if(!is_first_here);
  const std::string hash = fmt::format("{:016x}", corpus->hash());
  ranks.wait_patiently();
  compare(ranks, "text", hash);
  return std::move(*corpus);
}

void weights_from_first(Ranks& ranks, Model& model) {
  if (ranks.count() == 1) return;
  model.each_parameter([&](const std::string&, Parameter& p) {
    ranks.from_first(p.value);
    ranks.wait_for_first();
  });
}

TrainState resume(Ranks& ranks, const RunFolder* run, Model& model, Optimizer& optimizer, uint64_t text_hash) {
  std::optional<SafetensorsFile> newest;
  const std::string told = from_first(ranks, [&]() -> std::string {
    newest = run->newest_checkpoint();
    return newest ? "goes on" : "begins";
  });
  TrainState state;
  if (run) state = run->resume(newest, model, optimizer, text_hash, ranks);
  else if (told == "goes on") take_checkpoint(model, optimizer, ranks);
  return state_from_first(ranks, state);
}

void compare_replicas(Ranks& ranks, Model& model, int64_t step, int64_t saved) {
  if (ranks.count() == 1) return;
  std::string mine, differs;
  model.each_parameter([&](const std::string& path, Parameter& p) { mine += fmt::format("{} {:016x}\n", path, hash_of(p.value)); });
  const std::vector<std::string> own = lines_of(mine), theirs = lines_of(ranks.from_first(mine));
  for (size_t i = 0; i < own.size() && differs.empty(); ++i)
    if (own[i] != theirs[i]) differs = own[i].substr(0, own[i].find(' '));
  const std::vector<std::string> all = ranks.from_all(differs);
  for (int r = 0; r < ranks.count(); ++r)
    if (const std::string& path = all[static_cast<size_t>(r)]; !path.empty())
      fail("step {}: {} on {} is not rank 0's; nothing was saved; the last checkpoint is of step {}", {step, path, ranks.name(r), saved});
}

std::string ranks_line(const Ranks& ranks, const TrainConfig& config) {
  const int machines = ranks.machine_count();
  if (ranks.count() == 1) return "";
  return format_message(
      "{} ranks on {} {}, {} by {}, max_ranks {}\n", {ranks.count(), machines, machines == 1 ? "machine" : "machines",
                                                         name_of(config.device), ranks.carrier(config.device), *config.max_ranks});
}

}  // namespace ricci::apps
