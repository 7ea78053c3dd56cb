#include "apps/shared/run_folder.h"

#include <filesystem>
#include <set>

#include "apps/shared/config.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/file.h"
#include "core/safetensors.h"
#include "cuda/device.h"

namespace ricci::apps {

namespace fs = std::filesystem;

RunFolder RunFolder::create(const TrainConfig& config, const Tokenizer& tokenizer) {
  RunFolder run;
  run.path_ = "runs/" + config.name;
  run.config_ = config;
  run.tokenizer_ = tokenizer_from_json(tokenizer.to_json());
  if (fs::exists(run.file("model.safetensors")))
    fail("{}: holds a trained model already; remove the folder, or give the run another name with name=...", {run.path_});
  std::error_code error;
  fs::create_directories(run.path_, error);
  if (error) fail("{}: cannot be made: {}", {run.path_, error.message()});
  fs::remove(run.file("metrics.jsonl"), error);  // of a run that ended before it saved a model
  write_file_atomically(run.file("config.yaml"), to_yaml(config));
  write_file_atomically(run.file("tokenizer.json"), tokenizer.to_json());
  return run;
}

RunFolder RunFolder::open(const std::string& path) {
  if (!fs::is_directory(path)) fail("{}: no such run folder", {path});
  RunFolder run;
  run.path_ = path;
  while (run.path_.size() > 1 && run.path_.ends_with('/')) run.path_.pop_back();
  run.config_ = load_config<TrainConfig>(run.file("config.yaml"));
  const std::string tokenizer = run.file("tokenizer.json"), json = read_text(tokenizer);
  try {
    run.tokenizer_ = tokenizer_from_json(json);
  } catch (const Error& error) {
    fail("{}: {}", {tokenizer, error.what()});
  }
  return run;
}

void RunFolder::save_model(Model& model, int64_t step) const {
  std::vector<std::pair<std::string, Tensor>> tensors;
  model.each_parameter([&](const std::string& name, Parameter& p) { tensors.emplace_back(name, to(p.value, Device::cpu)); });
  save_safetensors(file("model.safetensors"), tensors, {{"format", "ricci"}, {"step", std::to_string(step)}});
}

Model RunFolder::load_model(Device device) const {
  Model model(config_.model);
  load_weights(model, file("model.safetensors"));
  model.place(Dtype::f32, device);
  return model;
}

void load_weights(Model& model, const std::string& path) {
  const SafetensorsFile file(path);
  std::set<std::string> known;
  load_parameters(model, [&](const std::string& name, const Shape& shape) {
    known.insert(name);
    if (!file.contains(name)) fail("{}: tensor {} {} is missing", {path, name, show(shape)});
    if (!(file.shape(name) == shape)) fail("{}: tensor {} is {}, expected {}", {path, name, show(file.shape(name)), show(shape)});
    return file.load(name);
  });
  for (const std::string& name : file.names())
    if (!known.count(name)) fail("{}: tensor {} {} is no parameter of this model", {path, name, show(file.shape(name))});
}

}  // namespace ricci::apps
