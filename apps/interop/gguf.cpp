// Writes GGUF files (format: interop.h). The header, with the offset of each tensor, is complete before the data.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "apps/interop/hugging_face.h"
#include "apps/interop/interop.h"
#include "apps/run/run_folder.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/files/file.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/chat.h"
#include "data/tokenizers/tokenizer.h"
#include "ops/rotary/rotary.h"

namespace ricci::apps {
namespace {

#ifdef __aarch64__
using Half = __fp16;  // g++ 12 has no _Float16 for ARM
#else
using Half = _Float16;
#endif

constexpr int64_t kAlignment = 32, kRowBlock = 32;  // in bytes; in elements of a row

// GGUF's codes for tensor and file types, indexed by GgufNumbers, and for token kinds.
constexpr int32_t kTensorTypes[] = {0, 1, 30, 8};
constexpr uint32_t kFileTypes[] = {0, 1, 32, 7};
constexpr int32_t kNormal = 1, kControl = 3, kOther = 4, kUnused = 5;

// Types of key values, and their codes.
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

// The keys of the tokens that end a text, an answer and a message. llama.cpp stops at each. Without the first key, it assumes id 11, a
// comma in many vocabularies.
constexpr const char* kEnds[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};

// The tokenizer as a byte-level BPE. Error: llama.cpp has no equivalent tokenizer.
const BpeTokenizer& byte_level(const Tokenizer& tokenizer) {
  const auto* const bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer);
  const auto refuse = [](const std::string& what) { fail("{} has no equivalent in GGUF; --without-tokenizer omits it", {what}); };
  if (tokenizer.eos() == Eos::line) refuse("a tokenizer with a token after every line");
  if (!bpe) refuse("the " + tokenizer.name() + " tokenizer");
  if (bpe->options().underscores != Underscores::none) refuse("a tokenizer with byte_fallback");
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

// The id of a token that no text contains: of a row without a token, or of the byte 0xFF (unused in UTF-8).
int64_t find_unused(const BpeTokenizer& tokenizer, int64_t rows) {
  for (int64_t id = 0; id < rows; ++id)
    if (id >= tokenizer.vocab_size() || !tokenizer.vocabulary().has(id)) return id;
  const int64_t byte = tokenizer.find(byte_to_letter(0xff));
  if (byte < 0) fail("the model has no end-of-text token, but llama.cpp needs one; train it with eos=document, or add --without-tokenizer");
  return byte;
}

// Adds the ids that begin and end a text. Without a key, llama.cpp also begins texts with id 11. Returns a line about omitted ends, or
// nothing.
std::string add_marks(GgufKeys& keys, const BpeTokenizer& tokenizer, Marks marks, int64_t rows) {
  if (marks.ends.empty()) marks.ends = {find_unused(tokenizer, rows)};
  if (marks.begin < 0) marks.begin = marks.ends[0];
  keys.emplace_back("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(marks.begin));
  std::string left_out;
  for (size_t i = 0; i < marks.ends.size(); ++i) {
    if (i < std::size(kEnds)) keys.emplace_back(kEnds[i], static_cast<uint32_t>(marks.ends[i]));
    else left_out += (left_out.empty() ? "'" : ", '") + one_line(tokenizer.vocabulary().piece(marks.ends[i])) + "'";
  }
  keys.emplace_back("tokenizer.ggml.add_bos_token", marks.first >= 0);
  return left_out.empty() ? "" : "\nGGUF names " + std::to_string(std::size(kEnds)) + " ends of a text; left out: " + left_out;
}

// Returns the same line as add_marks. `any` is null without a tokenizer.
std::string add_tokenizer(GgufKeys& keys, const Tokenizer* any, const Marks& marks, int64_t rows) {
  if (!any) {
    keys.emplace_back("tokenizer.ggml.model", "none");
    return "";
  }
  const BpeTokenizer& tokenizer = byte_level(*any);
  keys.emplace_back("tokenizer.ggml.model", "gpt2");
  for (const auto& [pattern, name] : kSplits)
    if (pattern == std::string_view(tokenizer.options().pattern->name)) keys.emplace_back("tokenizer.ggml.pre", name);
  add_tokens(keys, tokenizer, rows);
  Texts merges;
  for (const Merges::Merge& merge : tokenizer.merges().all())
    merges.push_back(std::string(tokenizer.vocabulary().piece(merge.left)) + " " + std::string(tokenizer.vocabulary().piece(merge.right)));
  keys.emplace_back("tokenizer.ggml.merges", merges);
  return add_marks(keys, tokenizer, marks, rows);
}

// ---- The models
struct GgufModel {
  std::string type;
  GgufKeys keys = {};
  NamedTensors tensors = {};  // on the CPU, in f32

  template <class T> void add(const char* key, const T& value) { keys.emplace_back(type + "." + key, value); }
  void add_size(const char* key, int64_t value) { add(key, static_cast<uint32_t>(value)); }
};

// GGUF's llama rotates columns 2i and 2i + 1 of a head together; ricci rotates columns i and i + k/2. So GGUF's row 2i is our row i, and
// GGUF's row 2i + 1 is our row i + k/2.
Tensor with_neighbours(const Tensor& w_xd, int64_t width) {
  const int64_t rows = w_xd.shape()[0], columns = w_xd.shape()[1];
  const Tensor y_xd(w_xd.shape(), Dtype::f32);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t place = row % width, from = row - place + place / 2 + place % 2 * (width / 2);
    std::copy_n(w_xd.data<float>() + from * columns, columns, y_xd.data<float>() + row * columns);
  }
  return y_xd;
}

void add_rope(GgufModel& gguf, const RotaryFrequencies& rope, int64_t width) {
  gguf.add_size("rope.dimension_count", width);
  gguf.add("rope.freq_base", static_cast<float>(rope.theta));
  if (rope.scaling == RopeScaling::linear) {
    gguf.add("rope.scaling.type", "linear");
    gguf.add("rope.scaling.factor", static_cast<float>(rope.factor));
  }
  if (rope.scaling != RopeScaling::llama3) return;
  if (gguf.type != "llama") fail("model.rope_scaling: llama3 has no equivalent in GGUF's {}", {gguf.type});
  const Tensor divisors({width / 2}, Dtype::f32);  // llama.cpp divides the frequencies by these numbers
  for (int64_t i = 0; i < width / 2; ++i)
    divisors.data<float>()[i] = static_cast<float>(rotary_frequency(i, width, {.theta = rope.theta}) / rotary_frequency(i, width, rope));
  gguf.tensors.emplace_back("rope_freqs.weight", divisors);
}

GgufModel to_gguf(Model& model) {
  const ModelConfig& c = model.config();
  const SdpConfig& attention = c.settings<Sdp>();
  const int64_t width = attention.width(c.d);
  GgufModel gguf{.type = hf_model_type(c)};
  const bool gpt2 = gguf.type == "gpt2";
  if (gpt2 && c.block.activation == Activation::relu) fail("model.activation: relu has no equivalent in GGUF's gpt2");
  gguf.add_size("context_length", c.ctx);
  gguf.add_size("embedding_length", c.d);
  gguf.add_size("block_count", c.layers);
  gguf.add_size("feed_forward_length", c.block.feed_forward(c.d));
  gguf.add_size("attention.head_count", attention.heads);
  if (!gpt2) {
    gguf.add_size("attention.head_count_kv", attention.key_heads());
    gguf.add_size("attention.key_length", width);
    gguf.add_size("attention.value_length", width);
    gguf.add_size("vocab_size", c.vocab);
  }
  gguf.add(gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", static_cast<float>(c.block.norm_eps));
  gguf.tensors = export_weights(model, WeightFormat::gguf);
  if (gpt2) return gguf;
  if (gguf.type == "llama")
    for (auto& [name, value] : gguf.tensors)
      if (name.ends_with("attn_q.weight") || name.ends_with("attn_k.weight")) value = with_neighbours(value, width);
  add_rope(gguf, c.embedding.rope, width);
  return gguf;
}

// ---- The file
// The requested type, unless the tensor needs a different one.
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

std::string gguf_bytes(std::span<const float> x, GgufNumbers numbers) {
  std::string bytes;
  bytes.reserve(static_cast<size_t>(bytes_of(std::ssize(x), numbers)));
  if (numbers == GgufNumbers::q8_0) {
    for (size_t first = 0; first + kRowBlock <= x.size(); first += kRowBlock) {
      float largest = 0;
      for (const float value : x.subspan(first, kRowBlock)) largest = std::max(largest, std::abs(value));
      const float scale = largest / 127, inverse = scale > 0 ? 1 / scale : 0;
      put(bytes, static_cast<Half>(scale));
      for (const float value : x.subspan(first, kRowBlock)) put(bytes, static_cast<int8_t>(std::round(value * inverse)));
    }
    return bytes;
  }
  for (const float value : x) {
    if (numbers == GgufNumbers::f32) put(bytes, value);
    else if (numbers == GgufNumbers::f16) put(bytes, static_cast<Half>(value));
    else put(bytes, bf16(value));
  }
  return bytes;
}

std::string export_gguf(const std::string& path, const std::string& file, GgufNumbers numbers, bool without_tokenizer) {
  const RunFolder run = RunFolder::open(path, RunFolder::Vocabulary::optional);
  Model model = run.load_model(Device::cpu);
  const ModelConfig& config = model.config();
  const GgufModel gguf = to_gguf(model);
  const Tokenizer* const tokenizer = without_tokenizer ? nullptr : run.tokenizer().get();
  GgufKeys keys = {{"general.architecture", gguf.type}, {"general.name", run.config().name},
      {"general.file_type", kFileTypes[static_cast<size_t>(numbers)]}};
  keys.insert(keys.end(), gguf.keys.begin(), gguf.keys.end());
  const std::string left_out = add_tokenizer(keys, tokenizer, marks_to_export(run), config.vocab);
  if (const std::string chat = tokenizer ? default_template(template_to_export(run), path) : ""; !chat.empty())
    keys.emplace_back("tokenizer.chat_template", chat);
  if (is_there(file)) fail("{}: already exists", {file});
  const auto write = [&](FileWriter& out) {
    out.write(header_of(keys, gguf.tensors, numbers));
    for (const auto& [name, tensor] : gguf.tensors) {
      const std::span x(tensor.data<float>(), static_cast<size_t>(tensor.size()));
      std::string bytes = gguf_bytes(x, numbers_of(name, tensor, numbers));
      bytes.resize(static_cast<size_t>(aligned(std::ssize(bytes))));
      out.write(bytes);
    }
  };
  write_atomically(file, write);
  return format_message("{}: {} parameters from {}\nGGUF of {}, {}, {}, vocabulary {}, context {}{}{}",
      {file, with_commas(model.parameter_count()), path, gguf.type, name_of(numbers),
          tokenizer ? tokenizer->name() + " tokenizer" : "no tokenizer", config.vocab, config.ctx,
          gguf.type == "gpt2" ? "\nllama.cpp computes GELU in its tanh form, from a table in f16" : "", left_out});
}

}  // namespace ricci::apps
