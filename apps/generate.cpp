// ricci-generate: continues a prompt with a trained model.
#include <cstdio>

#include "apps/runs/run_folder.h"
#include "apps/terminal/cli.h"
#include "core/cpu/parallel.h"
#include "cuda/device/device.h"
#include "models/decoding/sampling.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::string run, prompt = "\n", device = "cpu", checkpoint = "last", dtype = "f32";
  int64_t tokens = 200, context = 0;
  Sampling sampling;
  int threads = 0;
};

int generate_text(const Options& options) {
  if (options.threads) set_thread_count(options.threads);
  check(options.sampling);
  const Device device = parse_device(options.device.c_str());
  const RunFolder run = RunFolder::open(options.run);
  const Model model = run.load_model(device, options.checkpoint, parse_dtype(options.dtype.c_str()));
  const auto prompt = run.tokenizer()->encode(options.prompt);
  const int64_t context = run.context(options.context);
  if (const std::string note = run.context_note(context); !note.empty()) std::fprintf(stderr, "context %lld%s\n", static_cast<long long>(context), note.c_str());
  std::fputs(options.prompt.c_str(), stdout);
  generate(model, prompt, options.tokens, options.sampling, device, [&](int64_t token) {
    const std::string text = run.tokenizer()->decode({&token, 1});
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return true;
  }, context);
  std::puts("");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_app(argc, argv, {"ricci-generate", "Continues a prompt with a trained model."},
                 [&](CLI::App& app) {
                   app.add_option("run", options.run, "Folder of a run, such as runs/quickstart")->required();
                   app.add_option("--prompt", options.prompt, "Text to continue");
                   app.add_option("--tokens", options.tokens, "Tokens to write")->check(at_least_zero)->capture_default_str();
                   app.add_option("--context", options.context, "Tokens that the next one is drawn from, up to model.ctx; as many as the run was trained with if not given")->check(at_least_one);
                   app.add_option("--temperature", options.sampling.temperature, "Logits are divided by it; 0: always the most probable token")->capture_default_str();
                   app.add_option("--top-k", options.sampling.top_k, "Draw from the k most probable tokens; 0: from all")->capture_default_str();
                   app.add_option("--top-p", options.sampling.top_p, "Draw from the most probable tokens that together have this probability")->capture_default_str();
                   app.add_option("--seed", options.sampling.seed, "Of the draws")->check(at_least_zero)->capture_default_str();
                   app.add_option("--checkpoint", options.checkpoint, "last, best (by validation loss) or a step that is kept")->capture_default_str();
                   app.add_option("--dtype", options.dtype, "Of weights and activations: f32, f64 or bf16")->capture_default_str();
                   app.add_option("--device", options.device, "cpu, cuda or cuda_emulated")->capture_default_str();
                   app.add_option("--threads", options.threads, "CPU threads; all if not given")->check(thread_number);
                 },
                 [&] { return generate_text(options); });
}
