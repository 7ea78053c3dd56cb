// The options of programs that compute with a trained model.
#pragma once
#include <string>

#include "apps/run/run.h"
#include "apps/terminal/cli.h"

namespace ricci::apps {

// The device on which a model is computed, and the type of its numbers.
struct ComputeOptions {
  std::string dtype = "f32", device = "cpu";

  Dtype numbers() const;
  Device place() const;  // error: not available
};

// --precision, which --dtype is, too, and --device.
void add_compute_options(CLI::App& app, ComputeOptions& options);

// The model of a run, and how it is computed.
struct ModelOptions {
  std::string checkpoint = "last";
  int64_t context = 0;  // tokens, or 0 for the context of the training
  ComputeOptions compute;
  int threads = 0;  // 0 for all
};

// --context, --checkpoint, --precision, --device and --threads. what_context_is: "Tokens that a window holds".
void add_model_options(CLI::App& app, ModelOptions& options, const std::string& what_context_is);

struct OpenModel {
  Device device;
  RunFolder run;
  Model model;
  int64_t context;
};

// Sets the number of threads, opens the run and loads the model. Errors: as for RunFolder::open, load_model and context.
OpenModel open_model(const std::string& run, const ModelOptions& options);

}  // namespace ricci::apps
