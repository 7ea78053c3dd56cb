// What a model is, as a struct: the keys of `model:` in a run file, with their defaults. Descriptions say which family
// reads a key; in the others it has no effect.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ricci {

// Distances back from a query, half open: lo <= distance < hi; 0 is the token itself.
struct Window {
  int64_t lo = 0, hi = 0;
  bool operator==(const Window&) const = default;
};

struct ModelConfig {
  std::string family = "decoder";
  std::string preset = "gpt";
  std::string mixer = "sdp";
  int64_t vocab = 0;
  int64_t ctx = 64;
  int64_t d = 128;
  int64_t heads = 4;
  std::vector<int64_t> layers = {4};
  std::optional<int64_t> ff;
  double dropout = 0;
  bool bias = true;
  bool norm_bias = true;
  std::optional<int64_t> window;
  bool causal = true;

  // Given by the preset where the config does not say otherwise; the values here are those of gpt.
  std::string norm = "pre";
  std::string activation = "gelu";
  std::string positions = "learned";
  bool scale_embedding = false;
  bool tie = true;
  bool head_bias = false;

  // Dispatcher
  bool share_heads = false;
  std::string coef_act = "sigmoid";
  std::optional<int64_t> levels;
  bool drop_level0 = true;
  bool mixer_bias = false;

  // Metric forms and pooling
  bool value_proj = false;
  int64_t pool = 3;

  // Multi-scale
  std::vector<int64_t> scales = {1, 4, 16, 64};
  std::string down = "avg";
  int64_t conv_kernel = 1;
  std::string shift = "tight";
  bool chain = true;
  std::vector<Window> windows;
  std::string cell_rule = "inside";
  std::vector<int64_t> head_groups;
  int64_t scale = 4;

  // Classifier, and what is scored
  int64_t classes = 2;
  std::string loss_from = "0";

  bool operator==(const ModelConfig&) const = default;

  int64_t feed_forward() const { return ff.value_or(4 * d); }
  int64_t layers_of_decoder() const { return layers.front(); }
  int64_t dispatcher_levels() const;  // levels, or ceil(log2 ctx)
};

// The part of the list below that single mixers and families read.
template <class Field> void visit_special_fields(ModelConfig& c, Field& field) {
  field("share_heads", c.share_heads, "dispatcher: all heads share one set of weights");
  field("coef_act", c.coef_act, "dispatcher: activation of the coefficients", {"sigmoid", "none"});
  field("levels", c.levels, "dispatcher: levels, each doubles the reach; null: ceil(log2 ctx)");
  field("drop_level0", c.drop_level0, "dispatcher: dropout may skip level 0");
  field("mixer_bias", c.mixer_bias, "dispatcher and metric forms: linear maps have biases");
  field("value_proj", c.value_proj, "quad, p_only, metric, metric_psd: values have a projection of their own");
  field("pool", c.pool, "avgpool: tokens per mean; odd unless causal");
  field("scales", c.scales, "multi-scale: ascending from 1, each divides the next");
  field("down", c.down, "multi-scale: how tokens become cells", {"avg", "max", "conv"});
  field("conv_kernel", c.conv_kernel, "down: conv: width of the kernel in multiples of its stride");
  field("shift", c.shift, "topdown: what keeps the upsampled cells causal", {"tight", "block"});
  field("chain", c.chain, "bottomup: each scale reads the one below; false: the embeddings");
  field("windows", c.windows, "retina: distances lo:hi that each scale sees; [] for all");
  field("cell_rule", c.cell_rule, "retina: a cell is seen when all of it, or its end, is in the window",
        {"inside", "end"});
  field("head_groups", c.head_groups, "retina, bottomup: index of the scale of each head; [] for equal groups");
  field("scale", c.scale, "coarse: tokens per cell");
  field("classes", c.classes, "classifier: number of classes");
  field("loss_from", c.loss_from, "first position that counts in the loss; first_full: the first that all scales reach",
        {"0", "first_full"});
}

// The one list of keys: field(key, member, description) or field(key, member, description, {allowed values}).
// Reading, printing and --help-config all walk over it.
template <std::same_as<ModelConfig> Config, class Field> void visit_fields(Config& c, Field&& field) {
  field("family", c.family, "what is built", {"decoder", "topdown", "bottomup", "retina", "coarse", "classifier"});
  field("preset", c.preset, "gives the keys marked (preset) their defaults, and the initial weights", {"gpt", "msa"});
  field("mixer", c.mixer, "how tokens mix (decoder, classifier)",
        {"sdp", "dispatcher", "quad_full", "quad", "p_only", "metric", "metric_psd", "avgpool", "identity"});
  field("vocab", c.vocab, "size of the vocabulary; 0: that of the tokenizer");
  field("ctx", c.ctx, "longest context, in tokens");
  field("d", c.d, "width of the model");
  field("heads", c.heads, "attention heads; they divide d");
  field("layers", c.layers, "blocks; for topdown and bottomup a list, one number per scale");
  field("ff", c.ff, "width of the feed-forward layer; null: 4 d");
  field("dropout", c.dropout, "probability of dropout, at every site");
  field("bias", c.bias, "the linear maps of attention and feed-forward have biases");
  field("norm_bias", c.norm_bias, "layer norms have biases");
  field("window", c.window, "a token attends to itself and the window - 1 before it; null: to all");
  field("causal", c.causal, "no token sees a later one");
  field("norm", c.norm, "layer norm before or after the mixer and feed-forward (preset)", {"pre", "post"});
  field("activation", c.activation, "of the feed-forward layer (preset)", {"gelu", "gelu_tanh", "relu"});
  field("positions", c.positions, "what marks a position (preset)", {"learned", "sinusoidal", "none"});
  field("scale_embedding", c.scale_embedding, "token embeddings times sqrt(d) (preset)");
  field("tie", c.tie, "the output map is the embedding table (preset)");
  field("head_bias", c.head_bias, "the output map has a bias (preset)");
  visit_special_fields(c, field);
}

// Sets the keys that the preset gives. Error: an unknown preset.
void apply_preset(ModelConfig& config);

// Error: the first value that cannot be, as "model.heads: 3 does not divide d = 64". vocab must be known by now.
// Whether this version builds the family and the mixer is asked where models are built.
void check(const ModelConfig& config);

// Fills in what follows from other keys: ff, levels.
void resolve(ModelConfig& config);

}  // namespace ricci
