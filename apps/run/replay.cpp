#include <cmath>
#include <cstdio>

#include "apps/run/config.h"
#include "apps/run/init.h"
#include "apps/run/run.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/gemm/cublas/tuned_products.h"
#include "models/training/train_step.h"
#include "ops/optimizers/gradient_norm.h"

namespace ricci::apps {
namespace {

constexpr const char* kBatchPrefix = "batch.";

std::string name_of_part(size_t micro_batch, const char* part) { return kBatchPrefix + std::to_string(micro_batch) + "." + part; }

std::vector<MicroBatch> load_micro_batches(const SafetensorsFile& file, Device device) {
  std::vector<MicroBatch> all;
  for (size_t i = 0; file.contains(name_of_part(i, "ids")); ++i) {
    const auto load = [&](const char* part) {
      return file.contains(name_of_part(i, part)) ? to(file.load(name_of_part(i, part)), device) : Tensor();
    };
    const Tensor targets = file.load(name_of_part(i, "targets"));
    if (targets.dtype() != Dtype::i64)
      fail("{}: tensor {} is {}, expected i64", {file.path(), name_of_part(i, "targets"), name_of(targets.dtype())});
    all.push_back(micro_batch_from({load("ids"), to(targets, device), load("lengths"), load("starts")}));
  }
  if (all.empty()) fail("{}: holds no batch", {file.path()});
  return all;
}

int64_t step_in(const SafetensorsFile& file) {
  const auto step = number_in<int64_t>(file.metadata(), file.path(), "step");
  if (step < 0 || step > kMaxSteps) fail("{}: its metadata has step = {}, which cannot be", {file.path(), step});
  return step;
}

void load_parameters(Model& model, const SafetensorsFile& file) {
  model.load([&](const std::string& path, const Shape& shape) {
    const Tensor value = file.load_f32(path);
    if (!(value.shape() == shape)) fail("{}: tensor {} does not fit the model of config.yaml", {file.path(), path});
    return value;
  });
}

}  // namespace

void save_nonfinite_step(const RunFolder& run, const NamedTensors& weights, const std::vector<MicroBatch>& micro_batches, int64_t step) {
  NamedTensors tensors;
  for (size_t i = 0; i < micro_batches.size(); ++i) {
    const Inputs& inputs = micro_batches[i].inputs;
    tensors.emplace_back(name_of_part(i, "ids"), inputs.ids_bc);
    tensors.emplace_back(name_of_part(i, "targets"), inputs.targets);
    if (inputs.lengths_b) tensors.emplace_back(name_of_part(i, "lengths"), inputs.lengths_b);
    if (inputs.starts_bc) tensors.emplace_back(name_of_part(i, "starts"), inputs.starts_bc);
  }
  tensors.insert(tensors.end(), weights.begin(), weights.end());
  run.save_weights(kNonfiniteFile, tensors, step);
}

int replay_nonfinite_step(const std::string& folder, const std::vector<std::string>& overrides) {
  const RunFolder run = RunFolder::open(folder);
  TrainConfig config = load_config<TrainConfig>(run.path() + "/config.yaml", overrides);
  resolve_vocab(config, run.config().model.vocab);
  if (config.threads) set_thread_count(static_cast<int>(config.threads));
  require(config.device);
  if (!OpenFile::find(run.place(kNonfiniteFile)))
    fail("{}: there is no {}: no step of this run was other than finite", {run.path(), kNonfiniteFile});
  if (config.tune_products) tune_products(TunedProducts(run.place("products.txt"), TunedProducts::Keeps::nothing));
  const SafetensorsFile file(run.place(kNonfiniteFile));
  file.verify();
  const int64_t step = step_in(file);
  Model model(config.model);
  load_parameters(model, file);
  model.place_for_training(storage_dtype(config.precision), config.device);
  model.recompute_blocks(config.recompute == Recompute::blocks);
  freeze_parameters(model, config.freeze);

  const TrainStep train_step(model, config.device, config.seed);
  const std::vector<MicroBatch> micro_batches = load_micro_batches(file, config.device);
  const double loss = train_step.forward_backward(micro_batches, step);
  std::vector<Tensor> gradients;
  for (const Parameter* p : model.trained_parameters()) gradients.push_back(p->grad);
  const double norm = item(gradient_norm(gradients));
  if (!std::isfinite(loss) || !std::isfinite(norm)) train_step.explain_nonfinite(micro_batches, step, loss);
  std::puts(format_message("{}: step {} is finite here: loss {:.4f}, gradient norm {:.4g}", {run.path(), step + 1, loss, norm}).c_str());
  return 0;
}

}  // namespace ricci::apps
