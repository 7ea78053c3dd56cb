#include "apps/run/model_options.h"

#include <CLI/CLI.hpp>

#include "core/choice.h"
#include "core/cpu/parallel.h"
#include "cuda/device/device.h"

namespace ricci::apps {

Dtype ComputeOptions::numbers() const { return parse_dtype(dtype.c_str()); }
Device ComputeOptions::place() const { return parse_device(device.c_str()); }

void add_compute_options(CLI::App& app, ComputeOptions& options) {
  app.add_option("--precision,--dtype", options.dtype, std::string("Type of weights and activations: ") + kFloatingDtypes)
      ->capture_default_str();
  app.add_option("--device", options.device, "Where it is computed: " + list_of<Device>())->capture_default_str();
}

void add_model_options(CLI::App& app, ModelOptions& options, const std::string& what_context_is) {
  app.add_option("--context", options.context, what_context_is + ", up to model.ctx; the context of the training if not given")
      ->check(at_least_one);
  app.add_option("--checkpoint", options.checkpoint, "last, best (by validation loss) or a step that is kept")->capture_default_str();
  add_compute_options(app, options.compute);
  app.add_option("--threads", options.threads, "CPU threads; 0: all")->check(thread_number);
}

OpenModel open_model(const std::string& path, const ModelOptions& options) {
  if (options.threads) set_thread_count(options.threads);
  const Device device = options.compute.place();
  const Dtype dtype = options.compute.numbers();
  RunFolder run = RunFolder::open(path);
  const int64_t context = run.context(options.context);
  Model model = run.load_model(device, options.checkpoint, dtype);
  return {device, std::move(run), std::move(model), context};
}

}  // namespace ricci::apps
