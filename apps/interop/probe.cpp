// ricci-probe: logits, loss and every gradient of a model whose weights and inputs are given from outside.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/run/evaluation.h"
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

// The run file of a probe: a `model:` mapping with the keys of ModelConfig.
struct ProbeConfig {
  ModelConfig model;
};
void visit_fields(ProbeConfig& c, const Fields& field) { ricci::visit_fields(c.model, field.section("model")); }
void apply_preset(ProbeConfig& c) { ricci::apply_preset(c.model); }
void check(const ProbeConfig& c) { ricci::check(c.model); }

struct Options {
  std::string config, weights, input, output;
  bool scores = false;
  apps::ComputeOptions compute{.dtype = "f64"};
};

// Checkpoints of both kinds exist: without biases, layer norms and the output map may come with theirs or without, and so
// may a tied output map. The kind follows from the tensors in the file.
void follow_weights(ModelConfig& config, const SafetensorsFile& file) {
  config.settings<Classifier>().head_bias = file.contains("head.bias");
  bool& head_bias = config.output.head_bias;
  if (config.output.tie) head_bias = head_bias && file.contains("head.bias");
  if (config.block.bias) return;
  bool norm_bias = false;
  for (const std::string& name : file.names()) norm_bias |= name.ends_with("ln1.bias");
  config.block.norm_bias = norm_bias;
  head_bias = head_bias && file.contains("head.bias");
}

Tensor load_integers(const SafetensorsFile& file, const std::string& name, int rank, const char* expected) {
  if (!file.contains(name)) fail("{}: tensor {} is missing", {file.path(), name});
  if (file.shape(name).rank() != rank) fail("{}: tensor {} is {}, expected {}", {file.path(), name, show(file.shape(name)), expected});
  if (file.dtype(name) != Dtype::i64) fail("{}: tensor {} is {}, expected i64", {file.path(), name, name_of(file.dtype(name))});
  return file.load(name);
}

// The number of positions of each sequence that are no padding; empty if the file has none.
Tensor load_lengths(const SafetensorsFile& file, const Shape& ids) {
  if (!file.contains("lengths")) return {};
  const Tensor lengths_b = load_integers(file, "lengths", 1, "[batch]");
  if (lengths_b.size() != ids[0])
    fail("{}: lengths {} and ids {} differ in their batch", {file.path(), show(lengths_b.shape()), show(ids)});
  for (int64_t i = 0; i < lengths_b.size(); ++i)
    if (const int64_t length = lengths_b.data<int64_t>()[i]; length < 0 || length > ids[1])
      fail("{}: length {} at [{}] of lengths is outside 0 .. {}", {file.path(), length, i, ids[1]});
  return lengths_b;
}

// A coarse model is held to its own tokens and needs no targets.
Tensor load_targets(const SafetensorsFile& file, Objective objective, const Shape& ids) {
  if (objective == Objective::next_cell) return {};
  const bool classifier = objective == Objective::label;
  const Tensor targets = classifier ? load_integers(file, "targets", 1, "[batch]") : load_integers(file, "targets", 2, "[batch position]");
  if (!(targets.shape() == (classifier ? Shape{ids[0]} : ids)))
    fail("{}: ids {} and targets {} differ", {file.path(), show(ids), show(targets.shape())});
  return targets;
}

Inputs load_inputs(const SafetensorsFile& file, Objective objective, Device device) {
  const Tensor ids_bc = load_integers(file, "ids", 2, "[batch position]"), targets = load_targets(file, objective, ids_bc.shape());
  for (const std::string& name : file.names())
    if (name != "ids" && name != "targets" && name != "lengths") fail("{}: tensor {} is not read by this family", {file.path(), name});
  const Tensor lengths_b = load_lengths(file, ids_bc.shape());
  const auto placed = [&](const Tensor& t) { return t ? to(t, device) : t; };
  return {placed(ids_bc), placed(targets), placed(lengths_b)};
}

// A tensor for the output file: on the CPU, bf16 widened to f32.
Tensor result(const Tensor& t) { return to(t.dtype() == Dtype::bf16 ? convert(t, Dtype::f32) : t, Device::cpu); }

int probe(const Options& options) {
  ModelConfig config = apps::load_config<ProbeConfig>(options.config).model;
  if (options.scores && config.traits().objective != Objective::label)
    fail("--scores: the scores of a classifier, but model.family is {}", {name_of(config.family)});
  const Device device = options.compute.place();
  const SafetensorsFile weights(options.weights), input(options.input);
  follow_weights(config, weights);
  Model model(config);
  load_weights(model, weights);
  weights.verify_if_checked();
  model.place(options.compute.numbers(), device);

  const Inputs inputs = load_inputs(input, config.traits().objective, device);
  const auto batch = [&](int64_t) { return micro_batch_from(inputs); };
  if (options.scores) apps::print(to_text(apps::scores_of(evaluate_classes(model, 1, batch))));
  std::vector<std::pair<std::string, Tensor>> outputs = {{"logits", result(model.logits(inputs))}};
  check_embedding_ids(device);
  Tape tape;
  const Tensor loss = model.loss(inputs);
  outputs.emplace_back("loss", result(convert(loss, Dtype::f64)));
  tape.backward(loss);
  model.each_parameter(
      [&](const std::string& path, Parameter& p) { outputs.emplace_back("grad." + path, result(p.grad ? p.grad : zeros_like(p.value))); });
  save_safetensors(options.output, outputs);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return apps::run_app(
      argc, argv,
      {.name = "ricci-probe",
          .summary = "Logits, loss and gradients of a model and its inputs.",
          .examples = "ricci-probe --config m.yaml --weights w.st --input i.st -o out.st\n"
                      "ricci-probe --config m.yaml --weights w.st --input i.st -o out.st --scores"},
      [&](CLI::App& app) {
        app.add_option("--config", options.config, "YAML with a mapping `model:`")->required();
        app.add_option("--weights", options.weights, "safetensors: every parameter by its name")->required();
        app.add_option("--input", options.input,
               "safetensors: ids and targets, i64 [batch position]. The targets of a classifier are [batch], a coarse model has none. "
               "lengths, i64 [batch], if sequences are padded")
            ->required();
        app.add_option("-o,--output", options.output, "safetensors to write: logits, loss, grad.NAME")->required();
        app.add_flag("--scores", options.scores, "Print the scores of a classifier as JSON, such as accuracy and F1");
        apps::add_compute_options(app, options.compute);
      },
      [&] { return probe(options); });
}
