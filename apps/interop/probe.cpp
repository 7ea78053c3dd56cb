// ricci probe: computes logits, loss and every gradient for weights and inputs in files, for comparison with other frameworks.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "apps/interop/commands.h"
#include "apps/run/config.h"
#include "apps/run/options.h"
#include "autograd/tape.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/files/safetensors.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/model.h"
#include "models/training/checkpoint.h"
#include "ops/embedding/embedding.h"

using namespace ricci;

namespace {

// The run file of a probe: a `model:` mapping with ModelConfig's keys.
struct ProbeConfig {
  ModelConfig model;
};
void visit_fields(ProbeConfig& c, const Fields& field) { ricci::visit_fields(c.model, field.section("model")); }
void apply_preset(ProbeConfig& c) { ricci::apply_preset(c.model); }
void check(const ProbeConfig& c) { ricci::check(c.model); }

struct Options {
  std::string config, weights, input, output;
  apps::ComputeOptions compute{.dtype = "f64"};
};

// Enables biases of the layer norms and the output map only if the weight file contains them.
void match_weights(ModelConfig& config, const SafetensorsFile& file) {
  config.settings<Classifier>().head_bias = file.contains("head.bias");
  if (config.output.tie || !config.block.bias) config.output.head_bias = config.output.head_bias && file.contains("head.bias");
  const std::vector<std::string> names = file.names();
  const auto is_norm_bias = [](const std::string& name) { return name.ends_with("ln1.bias"); };
  if (!config.block.bias) config.block.norm_bias = std::any_of(names.begin(), names.end(), is_norm_bias);
}

Tensor load_integers(const SafetensorsFile& file, const std::string& name, int rank, const char* expected) {
  if (!file.contains(name)) fail("{}: tensor {} is missing", {file.path(), name});
  if (file.shape(name).rank() != rank) fail("{}: tensor {} is {}, expected {}", {file.path(), name, show(file.shape(name)), expected});
  if (file.dtype(name) != Dtype::i64) fail("{}: tensor {} is {}, expected i64", {file.path(), name, name_of(file.dtype(name))});
  return file.load(name);
}

// Reads a batch. A coarse model has no targets: it predicts its input tokens.
Batch load_batch(const SafetensorsFile& file, Objective objective, Device device) {
  const Tensor ids_bc = load_integers(file, "ids", 2, "[batch position]");
  const Shape& ids = ids_bc.shape();
  for (const std::string& name : file.names())
    if (name != "ids" && name != "targets" && name != "lengths") fail("{}: tensor {} is not used by this family", {file.path(), name});
  Tensor targets, lengths_b;
  if (objective != Objective::next_cell) {
    const bool labels = objective == Objective::label;
    targets = load_integers(file, "targets", labels ? 1 : 2, labels ? "[batch]" : "[batch position]");
    if (!(targets.shape() == (labels ? Shape{ids[0]} : ids)))
      fail("{}: the shapes of ids {} and targets {} do not match", {file.path(), show(ids), show(targets.shape())});
  }
  if (file.contains("lengths")) lengths_b = load_integers(file, "lengths", 1, "[batch]");
  if (lengths_b && lengths_b.size() != ids[0])
    fail("{}: lengths {} and ids {} have different batch sizes", {file.path(), show(lengths_b.shape()), show(ids)});
  for (int64_t i = 0; lengths_b && i < lengths_b.size(); ++i)
    if (const int64_t length = lengths_b.data<int64_t>()[i]; length < 0 || length > ids[1])
      fail("{0}: lengths[{2}] is {1}, expected 0 to {3}", {file.path(), length, i, ids[1]});
  return to(Batch{ids_bc, targets, lengths_b}, device);
}

// A tensor for the output file: on the CPU, and in f32 instead of bf16.
Tensor result(const Tensor& t) { return to(t.dtype() == Dtype::bf16 ? convert(t, Dtype::f32) : t, Device::cpu); }

int probe(const Options& options) {
  ModelConfig config = apps::load_config<ProbeConfig>(options.config).model;
  const Device device = parse_device(options.compute.device.c_str());
  const SafetensorsFile weights(options.weights), input(options.input);
  match_weights(config, weights);
  Model model(config);
  load_weights(model, weights);
  weights.verify_if_checked();
  model.place(parse_dtype(options.compute.dtype.c_str()), device);

  const Batch batch = load_batch(input, config.traits().objective, device);
  std::vector<std::pair<std::string, Tensor>> outputs = {{"logits", result(model.logits(batch))}};
  check_embedding_ids(device);
  Tape tape;
  const Tensor loss = model.loss(batch);
  outputs.emplace_back("loss", result(convert(loss, Dtype::f64)));
  tape.backward(loss);
  model.each_parameter(
      [&](const std::string& path, Parameter& p) { outputs.emplace_back("grad." + path, result(p.grad ? p.grad : zeros_like(p.value))); });
  save_safetensors(options.output, outputs);
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--config", options.config, "YAML file with a mapping `model:`")->required();
  app.add_option("--weights", options.weights, "safetensors file with every parameter under its name")->required();
  app.add_option("--input", options.input,
         "safetensors file with ids and targets, i64 [batch position] (classifier: targets [batch]; coarse: no targets), and lengths, i64 "
         "[batch], if sequences are padded")
      ->required();
  app.add_option("-o,--output", options.output, "safetensors file to write, with logits, loss and grad.NAME")->required();
  apps::add_compute_options(app, options.compute);
}

}  // namespace

const apps::Command apps::probe_command{{.name = "ricci probe",
                                            .summary = "Computes logits, loss and gradients for given weights and inputs.",
                                            .examples = "ricci probe --config m.yaml --weights w.st --input i.st -o out.st\n"
                                                        "ricci probe --config m.yaml --weights w.st --input i.st -o o.st --device cuda"},
    apps::with_options<Options, add_options, probe>};
