#include <algorithm>
#include <string_view>

#include "apps/interop/foreign_model.h"
#include "apps/interop/gguf.h"
#include "apps/interop/interop.h"
#include "apps/interop/llama.h"
#include "core/error.h"
#include "ops/rotary/rotary.h"

namespace ricci::apps {
namespace {

constexpr Row kGpt2GgufRows[] = {
    {"token_embd.weight", "tok.weight"},
    {"position_embd.weight", "pos.weight"},
    {"blk.{i}.attn_norm.weight", "blocks.{i}.ln1.weight"},
    {"blk.{i}.attn_norm.bias", "blocks.{i}.ln1.bias"},
    {"blk.{i}.attn_qkv.weight", "blocks.{i}.mixer.qkv.weight"},
    {"blk.{i}.attn_qkv.bias", "blocks.{i}.mixer.qkv.bias"},
    {"blk.{i}.attn_output.weight", "blocks.{i}.mixer.proj.weight"},
    {"blk.{i}.attn_output.bias", "blocks.{i}.mixer.proj.bias"},
    {"blk.{i}.ffn_norm.weight", "blocks.{i}.ln2.weight"},
    {"blk.{i}.ffn_norm.bias", "blocks.{i}.ln2.bias"},
    {"blk.{i}.ffn_up.weight", "blocks.{i}.fc.weight"},
    {"blk.{i}.ffn_up.bias", "blocks.{i}.fc.bias"},
    {"blk.{i}.ffn_down.weight", "blocks.{i}.fc_out.weight"},
    {"blk.{i}.ffn_down.bias", "blocks.{i}.fc_out.bias"},
    {"output_norm.weight", "ln_f.weight"},
    {"output_norm.bias", "ln_f.bias"},
    {"output.weight", "head.weight"},
};
constexpr Row kLlamaGgufRows[] = {
    {"token_embd.weight", "tok.weight"},
    {"blk.{i}.attn_norm.weight", "blocks.{i}.ln1.weight"},
    {"blk.{i}.attn_{q,k,v}.weight", "blocks.{i}.mixer.qkv.weight"},
    {"blk.{i}.attn_{q,k,v}.bias", "blocks.{i}.mixer.qkv.bias"},
    {"blk.{i}.attn_q_norm.weight", "blocks.{i}.mixer.q_norm.weight"},
    {"blk.{i}.attn_k_norm.weight", "blocks.{i}.mixer.k_norm.weight"},
    {"blk.{i}.attn_output.weight", "blocks.{i}.mixer.proj.weight"},
    {"blk.{i}.ffn_norm.weight", "blocks.{i}.ln2.weight"},
    {"blk.{i}.ffn_{gate,up}.weight", "blocks.{i}.fc.weight"},
    {"blk.{i}.ffn_down.weight", "blocks.{i}.fc_out.weight"},
    {"output_norm.weight", "ln_f.weight"},
    {"output.weight", "head.weight"},
};

void add_size(GgufModel& theirs, const char* key, int64_t value) { theirs.keys.emplace_back(key, static_cast<uint32_t>(value)); }

void add_sizes(GgufModel& theirs, const ModelConfig& c) {
  add_size(theirs, "context_length", c.ctx);
  add_size(theirs, "embedding_length", c.d);
  add_size(theirs, "block_count", c.layers);
  add_size(theirs, "feed_forward_length", c.block.feed_forward(c.d));
  add_size(theirs, "attention.head_count", c.settings<Sdp>().heads);
}

GgufModel as_gpt2(Model& model) {
  const ModelConfig& c = model.config();
  if (c.block.activation == Activation::relu) fail("model.activation: relu has no equivalent in GGUF's gpt2");
  Model full = with_gpt2_biases(model);
  GgufModel theirs{.type = "gpt2", .note = "llama.cpp computes GELU in its tanh form, from a table in f16"};
  add_sizes(theirs, c);
  theirs.keys.emplace_back("attention.layer_norm_epsilon", static_cast<float>(c.block.norm_eps));
  theirs.tensors = as_theirs(full, {"GGUF", kGpt2GgufRows, {}});
  return theirs;
}

// In llama, and only there, the columns 2i and 2i + 1 of a head turn together; here i and i + k/2 do. So row 2i of a head becomes our row
// i, and row 2i + 1 our row i + k/2.
Tensor with_neighbours(const Tensor& w_xd, int64_t width) {
  const int64_t rows = w_xd.shape()[0], columns = w_xd.shape()[1];
  const Tensor y_xd(w_xd.shape(), Dtype::f32);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t place = row % width, from = row - place + place / 2 + place % 2 * (width / 2);
    std::copy_n(w_xd.data<float>() + from * columns, columns, y_xd.data<float>() + row * columns);
  }
  return y_xd;
}

void add_rope(GgufModel& theirs, const RotaryFrequencies& rope, int64_t width) {
  add_size(theirs, "rope.dimension_count", width);
  theirs.keys.emplace_back("rope.freq_base", static_cast<float>(rope.theta));
  if (rope.scaling == RopeScaling::linear) {
    theirs.keys.emplace_back("rope.scaling.type", std::string("linear"));
    theirs.keys.emplace_back("rope.scaling.factor", static_cast<float>(rope.factor));
  }
  if (rope.scaling != RopeScaling::llama3) return;
  if (theirs.type != "llama") fail("model.rope_scaling: llama3 has no equivalent in GGUF's {}", {theirs.type});
  const Tensor divisors({width / 2}, Dtype::f32);  // llama.cpp divides the frequencies by them
  for (int64_t i = 0; i < width / 2; ++i)
    divisors.data<float>()[i] = static_cast<float>(rotary_frequency(i, width, {.theta = rope.theta}) / rotary_frequency(i, width, rope));
  theirs.tensors.emplace_back("rope_freqs.weight", divisors);
}

GgufModel as_llama(Model& model) {
  const ModelConfig& c = model.config();
  const SdpConfig& attention = c.settings<Sdp>();
  const int64_t width = attention.width(c.d);
  GgufModel theirs{.type = llama_type(c)};
  add_sizes(theirs, c);
  add_size(theirs, "attention.head_count_kv", attention.key_heads());
  add_size(theirs, "attention.key_length", width);
  add_size(theirs, "attention.value_length", width);
  add_size(theirs, "vocab_size", c.vocab);
  theirs.keys.emplace_back("attention.layer_norm_rms_epsilon", static_cast<float>(c.block.norm_eps));
  theirs.tensors = as_theirs(model, {"GGUF", kLlamaGgufRows, {}, "", "", llama_rows(c).key_rows});
  if (theirs.type == "llama")
    for (auto& [name, value] : theirs.tensors)
      if (name.ends_with("attn_q.weight") || name.ends_with("attn_k.weight")) value = with_neighbours(value, width);
  add_rope(theirs, c.embedding.rope, width);
  return theirs;
}

}  // namespace

GgufModel gguf_model(Model& model) { return model.config().embedding.positions == PositionKind::rope ? as_llama(model) : as_gpt2(model); }

}  // namespace ricci::apps
