#include "apps/interop/foreign_model.h"
#include "apps/interop/interop.h"
#include "core/dims.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

// Both models have the same layers but for the mixer. Matrices are (out, in) on both sides.
constexpr Row kDispatcherRows[] = {
    {"encoder.weight", "tok.weight"},
    {"transformer_encoder.layers.{i}.norm1.weight", "blocks.{i}.ln1.weight"},
    {"transformer_encoder.layers.{i}.norm1.bias", "blocks.{i}.ln1.bias"},
    {"transformer_encoder.layers.{i}.norm2.weight", "blocks.{i}.ln2.weight"},
    {"transformer_encoder.layers.{i}.norm2.bias", "blocks.{i}.ln2.bias"},
    {"transformer_encoder.layers.{i}.linear1.weight", "blocks.{i}.fc.weight"},
    {"transformer_encoder.layers.{i}.linear1.bias", "blocks.{i}.fc.bias"},
    {"transformer_encoder.layers.{i}.linear2.weight", "blocks.{i}.fc_out.weight"},
    {"transformer_encoder.layers.{i}.linear2.bias", "blocks.{i}.fc_out.bias"},
    {"decoder.weight", "head.weight"},
    {"decoder.bias", "head.bias"},
    // attention
    {"transformer_encoder.layers.{i}.self_attn.in_proj_weight", "blocks.{i}.mixer.qkv.weight"},
    {"transformer_encoder.layers.{i}.self_attn.in_proj_bias", "blocks.{i}.mixer.qkv.bias"},
    {"transformer_encoder.layers.{i}.self_attn.out_proj.weight", "blocks.{i}.mixer.proj.weight"},
    {"transformer_encoder.layers.{i}.self_attn.out_proj.bias", "blocks.{i}.mixer.proj.bias"},
    // dispatcher
    {"transformer_encoder.layers.{i}.self_attn.linear_in.weight", "blocks.{i}.mixer.value.weight"},
    {"transformer_encoder.layers.{i}.self_attn.internal_attention.weight", "blocks.{i}.mixer.coef.weight"},
    {"transformer_encoder.layers.{i}.self_attn.linear_out.weight", "blocks.{i}.mixer.out.weight"},
};
// The sinusoids, which are computed here.
constexpr const char* kConstants[] = {"pos_encoder.pe"};
constexpr const char *kEncoder = "encoder.weight", *kAttention = "self_attn.in_proj_weight",
                     *kCoefficients = "self_attn.internal_attention.weight", *kFeedForward = "linear1.weight";

std::string of_layer(int64_t layer, const char* name) { return "transformer_encoder.layers." + std::to_string(layer) + "." + name; }

Shape matrix_shape(const WeightFiles& files, const std::string& name) {
  if (!files.contains(name)) fail("{}: tensor {} is missing", {files.path, name});
  const Shape shape = files.file_of(name).shape(name);
  if (shape.rank() != 2) fail("{}: tensor {} is {}, expected a matrix", {files.path, name, show(shape)});
  return shape;
}

void set_mixer(ModelConfig& config, const WeightFiles& files, const DispatcherImport& options) {
  const std::string attention = of_layer(0, kAttention), coefficients = of_layer(0, kCoefficients);
  config.ctx = options.context;
  if (files.contains(attention)) {
    config.settings<Sdp>().heads = options.heads;
    if (config.ctx == 0) fail("{}: attention does not record its context; choose it with --context", {files.path});
    return;
  }
  if (!files.contains(coefficients))
    fail("{}: has neither {} nor {}; it is no model of the Dispatcher repository", {files.path, attention, coefficients});
  if (options.heads != 1)
    fail("{}: a dispatcher of {} heads; with more than one the models of that repository mix heads and positions up",
        {files.path, options.heads});
  config.mixer = choice_of<MixerKind>("model.mixer", "dispatcher");
  const int64_t levels = matrix_shape(files, coefficients)[0];
  constexpr int64_t most = 30;
  if (levels < 1 || levels > most) fail("{}: {} levels, expected 1 to {}", {files.path, levels, most});
  if (config.ctx == 0) config.ctx = int64_t{1} << levels;
}

ModelConfig config_of(const WeightFiles& files, const DispatcherImport& options) {
  ModelConfig config;
  config.preset = Preset::msa;
  apply_preset(config);
  set_mixer(config, files, options);
  const Shape table = matrix_shape(files, kEncoder);
  config.vocab = table[0];
  config.d = table[1];
  config.layers = 0;
  while (files.contains(of_layer(config.layers, kFeedForward))) ++config.layers;
  if (config.layers == 0) fail("{}: tensor {} is missing", {files.path, of_layer(0, kFeedForward)});
  config.block.ff = matrix_shape(files, of_layer(0, kFeedForward))[0];
  config.block.dropout = options.dropout;
  try {
    check(config);
  } catch (const Error& error) {
    fail("{}: {}", {files.path, error.what()});
  }
  return config;
}

}  // namespace

std::string import_dispatcher(const std::string& file, const std::string& run, const DispatcherImport& options) {
  const WeightFiles files = open_weights(file);
  Model model(config_of(files, options));
  load_theirs(model, {"Dispatcher repository", kDispatcherRows, kConstants}, files);
  return write_imported_run(run, model, nullptr, file);
}

}  // namespace ricci::apps
