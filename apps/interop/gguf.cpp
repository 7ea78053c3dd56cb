#include "apps/interop/gguf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "apps/interop/their_models.h"
#include "apps/interop/their_tokenizer.h"
#include "apps/run/run.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/files/file.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/chat.h"
#include "data/tokenizers/tokenizer.h"
#include "ops/rotary/rotary.h"

namespace ricci::apps {
namespace {

constexpr int64_t kAlignment = 32, kRowBlock = 32;  // bytes; numbers of a row

// Their numbers for tensors and whole files, by GgufNumbers; and for kinds of tokens.
constexpr int32_t kTensorTypes[] = {0, 1, 30, 8};
constexpr uint32_t kFileTypes[] = {0, 1, 32, 7};
constexpr int32_t kNormal = 1, kControl = 3, kOther = 4, kUnused = 5;

// A key's value, and their number for its type.
using Texts = std::vector<std::string>;
using Integers = std::vector<int32_t>;
using GgufValue = std::variant<uint32_t, int32_t, float, bool, std::string, Texts, Integers>;
using GgufKeys = std::vector<std::pair<std::string, GgufValue>>;
constexpr int32_t kValueTypes[] = {4, 5, 6, 7, 8, 9, 9};
template <class T> int32_t type_of() { return kValueTypes[GgufValue(T()).index()]; }

template <class T> void put(std::string& bytes, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    put<uint64_t>(bytes, value.size());
    bytes += value;
  } else if constexpr (std::is_same_v<T, Texts> || std::is_same_v<T, Integers>) {
    put(bytes, type_of<typename T::value_type>());
    put<uint64_t>(bytes, value.size());
    for (const auto& each : value) put(bytes, each);
  } else {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
}

// ---- The tokenizer
constexpr std::pair<const char*, const char*> kSplits[] = {
    {"gpt2", "gpt-2"}, {"llama3", "llama-bpe"}, {"qwen2", "qwen2"}, {"smollm", "smollm"}};

// The ends of a text, of an answer, and of a message: llama.cpp stops at each.
constexpr const char* kEnds[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};

// Error: llama.cpp has no such tokenizer.
const BpeTokenizer& byte_level(const Tokenizer& tokenizer) {
  const auto* const bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer);
  const auto refuse = [](const std::string& what) { fail("{} has no equivalent in GGUF; --without-tokenizer leaves it out", {what}); };
  if (tokenizer.eos() == Eos::line) refuse("a tokenizer with a piece after every line");
  if (!bpe) refuse("the " + tokenizer.name() + " tokenizer");
  if (bpe->options().add_prefix_space) refuse("a tokenizer that puts a space before every text");
  return *bpe;
}

void add_tokens(GgufKeys& keys, const BpeTokenizer& tokenizer, int64_t rows) {
  Texts tokens;
  Integers types;
  for (int64_t id = 0; id < rows; ++id) {
    const bool has_piece = id < tokenizer.vocab_size() && tokenizer.vocabulary().has(id);
    tokens.push_back(has_piece ? std::string(tokenizer.vocabulary().piece(id)) : "[PAD" + std::to_string(id) + "]");
    types.push_back(has_piece ? kNormal : kUnused);
  }
  for (const AddedToken& token : tokenizer.added_tokens()) types[static_cast<size_t>(token.id)] = token.special ? kControl : kOther;
  keys.emplace_back("tokenizer.ggml.tokens", tokens);
  keys.emplace_back("tokenizer.ggml.token_type", types);
}

// `any` is null without a tokenizer.
void add_tokenizer(GgufKeys& keys, const Tokenizer* any, const Marks& marks, int64_t rows) {
  if (!any) {
    keys.emplace_back("tokenizer.ggml.model", "none");
    return;
  }
  const BpeTokenizer& tokenizer = byte_level(*any);
  keys.emplace_back("tokenizer.ggml.model", "gpt2");
  for (const auto& [ours, theirs] : kSplits)
    if (ours == std::string_view(tokenizer.options().pattern->name)) keys.emplace_back("tokenizer.ggml.pre", theirs);
  add_tokens(keys, tokenizer, rows);
  Texts merges;
  for (const Merges::Merge& merge : tokenizer.merges().all())
    merges.push_back(std::string(tokenizer.vocabulary().piece(merge.left)) + " " + std::string(tokenizer.vocabulary().piece(merge.right)));
  keys.emplace_back("tokenizer.ggml.merges", merges);
  if (marks.begin >= 0) keys.emplace_back("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(marks.begin));
  for (size_t i = 0; i < std::min(marks.ends.size(), std::size(kEnds)); ++i)
    keys.emplace_back(kEnds[i], static_cast<uint32_t>(marks.ends[i]));
  keys.emplace_back("tokenizer.ggml.add_bos_token", marks.first >= 0);
}

// ---- The models
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

struct GgufModel {
  std::string type;
  std::string note = {};  // a difference in the arithmetic of llama.cpp
  GgufKeys keys = {};
  NamedTensors tensors = {};  // on the CPU, in f32

  template <class T> void add(const char* key, const T& value) { keys.emplace_back(type + "." + key, value); }
  void add_size(const char* key, int64_t value) { add(key, static_cast<uint32_t>(value)); }
};

void add_sizes(GgufModel& theirs, const ModelConfig& c) {
  theirs.add_size("context_length", c.ctx);
  theirs.add_size("embedding_length", c.d);
  theirs.add_size("block_count", c.layers);
  theirs.add_size("feed_forward_length", c.block.feed_forward(c.d));
  theirs.add_size("attention.head_count", c.settings<Sdp>().heads);
}

GgufModel as_gpt2(Model& model) {
  const ModelConfig& c = model.config();
  if (c.block.activation == Activation::relu) fail("model.activation: relu has no equivalent in GGUF's gpt2");
  Model full = with_gpt2_biases(model);
  GgufModel theirs{.type = "gpt2", .note = "llama.cpp computes GELU in its tanh form, from a table in f16"};
  add_sizes(theirs, c);
  theirs.add("attention.layer_norm_epsilon", static_cast<float>(c.block.norm_eps));
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
  theirs.add_size("rope.dimension_count", width);
  theirs.add("rope.freq_base", static_cast<float>(rope.theta));
  if (rope.scaling == RopeScaling::linear) {
    theirs.add("rope.scaling.type", "linear");
    theirs.add("rope.scaling.factor", static_cast<float>(rope.factor));
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
  GgufModel theirs{.type = their_type(c)};
  add_sizes(theirs, c);
  theirs.add_size("attention.head_count_kv", attention.key_heads());
  theirs.add_size("attention.key_length", width);
  theirs.add_size("attention.value_length", width);
  theirs.add_size("vocab_size", c.vocab);
  theirs.add("attention.layer_norm_rms_epsilon", static_cast<float>(c.block.norm_eps));
  theirs.tensors = as_theirs(model, {"GGUF", kLlamaGgufRows, {}, "", "", their_architecture(c).key_rows});
  if (theirs.type == "llama")
    for (auto& [name, value] : theirs.tensors)
      if (name.ends_with("attn_q.weight") || name.ends_with("attn_k.weight")) value = with_neighbours(value, width);
  add_rope(theirs, c.embedding.rope, width);
  return theirs;
}

// ---- The file
// The numbers of a tensor: the requested ones, unless it has to be another kind.
GgufNumbers numbers_of(const std::string& name, const Tensor& tensor, GgufNumbers asked) {
  if (tensor.shape().rank() < 2 || name.ends_with("_norm.weight") || name == "position_embd.weight") return GgufNumbers::f32;
  return asked == GgufNumbers::q8_0 && tensor.shape()[-1] % kRowBlock != 0 ? GgufNumbers::f16 : asked;
}

int64_t bytes_of(int64_t size, GgufNumbers numbers) {
  if (numbers == GgufNumbers::q8_0) return size / kRowBlock * (2 + kRowBlock);
  return size * (numbers == GgufNumbers::f32 ? 4 : 2);
}

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::string header_of(const GgufKeys& keys, const NamedTensors& tensors, GgufNumbers asked) {
  std::string header = "GGUF";
  put<uint32_t>(header, 3);
  put<int64_t>(header, std::ssize(tensors));
  put<int64_t>(header, std::ssize(keys));
  for (const auto& [key, value] : keys) {
    put(header, key);
    put(header, kValueTypes[value.index()]);
    std::visit([&](const auto& held) { put(header, held); }, value);
  }
  int64_t place = 0;
  for (const auto& [name, tensor] : tensors) {
    const GgufNumbers numbers = numbers_of(name, tensor, asked);
    put(header, name);
    put<uint32_t>(header, static_cast<uint32_t>(tensor.shape().rank()));
    for (int i = tensor.shape().rank(); i-- > 0;) put<int64_t>(header, tensor.shape()[i]);
    put(header, kTensorTypes[static_cast<size_t>(numbers)]);
    put<uint64_t>(header, static_cast<uint64_t>(place));
    place += aligned(bytes_of(tensor.size(), numbers));
  }
  header.resize(static_cast<size_t>(aligned(std::ssize(header))));
  return header;
}

}  // namespace

uint16_t f16_bits(float x) {
  const auto bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);  // NaN
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);
  // Below 2^-14 the last bit is worth 2^-24, so that adding 1/2, whose last bit has the same worth, rounds to it.
  if (magnitude < 0x38800000u)
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u));
  const uint32_t half = 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + half) >> 13));
}

std::string gguf_bytes(std::span<const float> x, GgufNumbers numbers) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(bytes_of(std::ssize(x), numbers)));
  if (numbers == GgufNumbers::q8_0) {
    for (size_t first = 0; first + kRowBlock <= x.size(); first += kRowBlock) {
      float largest = 0;
      for (const float value : x.subspan(first, kRowBlock)) largest = std::max(largest, std::abs(value));
      const float scale = largest / 127, inverse = scale > 0 ? 1 / scale : 0;
      put(bytes, f16_bits(scale));
      for (const float value : x.subspan(first, kRowBlock)) put(bytes, static_cast<int8_t>(std::round(value * inverse)));
    }
    return bytes;
  }
  for (const float value : x) {
    if (numbers == GgufNumbers::f32) put(bytes, value);
    else put(bytes, numbers == GgufNumbers::f16 ? f16_bits(value) : bf16(value).bits);
  }
  return bytes;
}

std::string export_gguf(
    const std::string& path, const std::string& which, const std::string& file, GgufNumbers numbers, bool without_tokenizer) {
  const RunFolder run = RunFolder::open(path, RunFolder::Vocabulary::optional);
  Model model = run.load_model(Device::cpu, which);
  const ModelConfig& config = model.config();
  const GgufModel theirs = config.embedding.positions == PositionKind::rope ? as_llama(model) : as_gpt2(model);
  const Tokenizer* const tokenizer = without_tokenizer ? nullptr : run.tokenizer().get();
  GgufKeys keys = {{"general.architecture", theirs.type}, {"general.name", run.config().name},
      {"general.file_type", kFileTypes[static_cast<size_t>(numbers)]}};
  keys.insert(keys.end(), theirs.keys.begin(), theirs.keys.end());
  add_tokenizer(keys, tokenizer, marks_of(run), config.vocab);
  if (const std::string chat = tokenizer ? chosen_template(template_of(run), path) : ""; !chat.empty())
    keys.emplace_back("tokenizer.chat_template", chat);
  if (is_there(file)) fail("{}: is there already", {file});
  const auto write = [&](FileWriter& out) {
    out.write(header_of(keys, theirs.tensors, numbers));
    for (const auto& [name, tensor] : theirs.tensors) {
      const std::span x(tensor.data<float>(), static_cast<size_t>(tensor.size()));
      std::string bytes = gguf_bytes(x, numbers_of(name, tensor, numbers));
      bytes.resize(static_cast<size_t>(aligned(std::ssize(bytes))));
      out.write(bytes);
    }
  };
  write_atomically(file, write);
  return format_message("{}: {} parameters from {}\nGGUF of {}, {}, {}, vocabulary {}, context {}{}",
      {file, with_commas(model.parameter_count()), path, theirs.type, name_of(numbers),
          tokenizer ? tokenizer->name() + " tokenizer" : "no tokenizer", config.vocab, config.ctx,
          (theirs.note.empty() ? "" : "\n") + theirs.note});
}

}  // namespace ricci::apps
