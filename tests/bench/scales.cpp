// The attention of retina with windows 0:8, 8:256, 256:512 on 1, 4 and 16, next to full attention, at the multi-scale paper's width of 768
// and 12 heads, forward and backward: time, FLOPs.
//   ricci-bench-scales [name ...] [--list] [--steps=N] [--dtype=f32|bf16] [--device=cpu]
// Prints "measure NAME VALUE UNIT".
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "autograd/tape.h"
#include "models/families/retina.h"
#include "models/layers/visit.h"
#include "models/mixers/mixers.h"
#include "tests/bench/measured_steps.h"

using namespace ricci;
using bench::Options;

namespace {

constexpr int64_t kWidth = 768, kHeads = 12;

void measure(const std::string& name, double value, const char* unit) {
  std::printf("measure %s %.4f %s\n", name.c_str(), value, unit);
  std::fflush(stdout);
}

// The attention of a mixer, without its maps: the share of the ops called attention in a step.
template <Mixer M> struct Attending {
  M mixer;
  Tensor x_bcd, dy_bcd;

  Attending(const typename M::Config& config, int64_t positions, const Options& options) : mixer({.d = kWidth, .ctx = positions}, config) {
    each_parameter(mixer, [&](const std::string& path, Parameter& p) {
      p.path = path, draw(p, 1);
      p.value = to(convert(p.value, options.as()), options.on());
    });
    const Shape bcd{4096 / positions, positions, kWidth};
    x_bcd = bench::random(bcd, 1, options.as(), options.on()), dy_bcd = bench::random(bcd, 2, options.as(), options.on());
  }
  void step() {
    {
      Tape tape;
      const Tensor y_bcd = mixer(tape.watch(x_bcd), Tensor());
      tape.backward(y_bcd, dy_bcd);
    }
    each_parameter(mixer, [](const std::string&, Parameter& p) { p.grad = {}; });
  }
  trace::Work timed() {
    const trace::Counter timer(true);
    step();
    trace::Work all;
    for (const auto& [op, work] : timer.work())
      if (op.starts_with("attention")) all.seconds += work.seconds, all.flops += work.flops;
    return all;
  }
};

void measure_retina(int64_t positions, const Options& options) {
  AttentionConfig heads;
  heads.heads = kHeads;
  RetinaAttention::Config config{.scales = {{1, 4, 16}}, .down = {}, .retina = {}, .attention = heads};
  config.retina.windows = {{0, 8}, {8, 256}, {256, 512}};
  const std::string name = "retina_" + std::to_string(positions);
  Attending<RetinaAttention> retina(config, positions, options);
  Attending<Sdp> full(SdpConfig{heads}, positions, options);
  retina.step(), full.step();
  std::vector<double> retina_seconds, full_seconds;
  double flops[2] = {};
  for (int round = 0; round < std::max(7, options.steps); ++round) {
    const trace::Work of_retina = retina.timed(), of_full = full.timed();
    retina_seconds.push_back(of_retina.seconds), full_seconds.push_back(of_full.seconds);
    flops[0] = of_retina.flops, flops[1] = of_full.flops;
  }
  measure(name + "_attention", bench::median(retina_seconds) * 1e3, "ms for 4096 tokens");
  measure(name + "_attention_gflop", flops[0] * 1e-9, "GFLOP for 4096 tokens");
  measure(name + "_full_attention", bench::median(full_seconds) * 1e3, "ms for 4096 tokens");
  measure(name + "_time", bench::median(retina_seconds) / bench::median(full_seconds), "of full attention");
  measure(name + "_flops", flops[0] / flops[1], "of full attention");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const apps::AppText text{"ricci-bench-scales", "The speed of attention of several scales beside that of one."};
  return apps::run_app(
      argc, argv, text, [&](CLI::App& app) { bench::add_options(app, options); },
      [&] {
        const std::vector<int64_t> positions = {512, 1024, 2048, 4096};
        std::vector<std::string> names;
        for (const int64_t n : positions) names.push_back("retina_" + std::to_string(n));
        return bench::measure_named(
            options, names, [](size_t) { return true; }, [&](size_t i) { measure_retina(positions[i], options); });
      });
}
