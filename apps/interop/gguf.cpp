#include "apps/interop/gguf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "apps/interop/their_tokenizer.h"
#include "apps/run/run.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/files/file.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/chat.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci::apps {
namespace {

constexpr int64_t kAlignment = 32, kRowBlock = 32;  // bytes; numbers of a row

// Their numbers for types of values, tensors, and whole files, by GgufNumbers; and for kinds of tokens.
enum ValueType : int32_t { u32 = 4, i32 = 5, f32 = 6, boolean = 7, text = 8, list = 9 };
constexpr int32_t kTensorTypes[] = {0, 1, 30, 8};
constexpr uint32_t kFileTypes[] = {0, 1, 32, 7};
constexpr int32_t kNormal = 1, kControl = 3, kOther = 4, kUnused = 5;

template <class T> void put(std::string& bytes, T value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }
void put_text(std::string& bytes, std::string_view text) {
  put<uint64_t>(bytes, text.size());
  bytes += text;
}

// Keys and their values.
class Pairs {
 public:
  void add(const std::string& key, uint32_t value) { put(start(key, ValueType::u32), value); }
  void add(const std::string& key, float value) { put(start(key, ValueType::f32), value); }
  void add(const std::string& key, bool value) { put(start(key, ValueType::boolean), value); }
  void add(const std::string& key, const std::string& value) { put_text(start(key, ValueType::text), value); }
  void add(const std::string& key, const std::vector<std::string>& values) {
    std::string& all = start_list(key, ValueType::text, values.size());
    for (const std::string& each : values) put_text(all, each);
  }
  void add(const std::string& key, const std::vector<int32_t>& values) {
    std::string& all = start_list(key, ValueType::i32, values.size());
    for (const int32_t each : values) put(all, each);
  }
  int64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string& start(const std::string& key, ValueType type) {
    ++count_;
    put_text(bytes_, key);
    put<int32_t>(bytes_, type);
    return bytes_;
  }
  std::string& start_list(const std::string& key, ValueType type, size_t size) {
    put<int32_t>(start(key, ValueType::list), type);
    put<uint64_t>(bytes_, size);
    return bytes_;
  }
  std::string bytes_;
  int64_t count_ = 0;
};

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

void add_tokens(Pairs& pairs, const BpeTokenizer& tokenizer, int64_t rows) {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  for (int64_t id = 0; id < rows; ++id) {
    const bool has_piece = id < tokenizer.vocab_size() && tokenizer.vocabulary().has(id);
    tokens.push_back(has_piece ? std::string(tokenizer.vocabulary().piece(id)) : "[PAD" + std::to_string(id) + "]");
    types.push_back(has_piece ? kNormal : kUnused);
  }
  for (const AddedToken& token : tokenizer.added_tokens()) types[static_cast<size_t>(token.id)] = token.special ? kControl : kOther;
  pairs.add("tokenizer.ggml.tokens", tokens);
  pairs.add("tokenizer.ggml.token_type", types);
}

// `any` is null without a tokenizer.
void add_tokenizer(Pairs& pairs, const Tokenizer* any, const Marks& marks, int64_t rows) {
  if (!any) return pairs.add("tokenizer.ggml.model", std::string("none"));
  const BpeTokenizer& tokenizer = byte_level(*any);
  pairs.add("tokenizer.ggml.model", std::string("gpt2"));
  for (const auto& [ours, theirs] : kSplits)
    if (ours == std::string_view(tokenizer.options().pattern->name)) pairs.add("tokenizer.ggml.pre", std::string(theirs));
  add_tokens(pairs, tokenizer, rows);
  std::vector<std::string> merges;
  for (const Merges::Merge& merge : tokenizer.merges().all())
    merges.push_back(std::string(tokenizer.vocabulary().piece(merge.left)) + " " + std::string(tokenizer.vocabulary().piece(merge.right)));
  pairs.add("tokenizer.ggml.merges", merges);
  if (marks.begin >= 0) pairs.add("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(marks.begin));
  for (size_t i = 0; i < std::min(marks.ends.size(), std::size(kEnds)); ++i) pairs.add(kEnds[i], static_cast<uint32_t>(marks.ends[i]));
  pairs.add("tokenizer.ggml.add_bos_token", marks.first >= 0);
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

std::string header_of(const Pairs& pairs, const std::vector<std::pair<std::string, Tensor>>& tensors, GgufNumbers asked) {
  std::string header = "GGUF";
  put<uint32_t>(header, 3);
  put<int64_t>(header, std::ssize(tensors));
  put<int64_t>(header, pairs.count());
  header += pairs.bytes();
  int64_t place = 0;
  for (const auto& [name, tensor] : tensors) {
    const GgufNumbers numbers = numbers_of(name, tensor, asked);
    put_text(header, name);
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
  const GgufModel theirs = gguf_model(model);
  const Tokenizer* const tokenizer = without_tokenizer ? nullptr : run.tokenizer().get();
  Pairs pairs;
  pairs.add("general.architecture", theirs.type);
  pairs.add("general.name", run.config().name);
  pairs.add("general.file_type", kFileTypes[static_cast<size_t>(numbers)]);
  for (const auto& pair : theirs.keys)
    std::visit([&](const auto& value) { pairs.add(theirs.type + "." + pair.first, value); }, pair.second);
  add_tokenizer(pairs, tokenizer, marks_of(run), config.vocab);
  if (const std::string talks = tokenizer ? text_of(talks_of(run), path) : ""; !talks.empty()) pairs.add("tokenizer.chat_template", talks);
  if (is_there(file)) fail("{}: is there already", {file});
  const auto write = [&](FileWriter& out) {
    out.write(header_of(pairs, theirs.tensors, numbers));
    for (const auto& [name, tensor] : theirs.tensors) {
      const std::span x(tensor.data<float>(), static_cast<size_t>(tensor.size()));
      std::string bytes = gguf_bytes(x, numbers_of(name, tensor, numbers));
      bytes.resize(static_cast<size_t>(aligned(std::ssize(bytes))));
      out.write(bytes);
    }
  };
  try {
    write_file_atomically(file, write);
  } catch (const Error&) {
    remove_file(file);  // it has its name already if only its folder could not be synced; the next call would refuse it
    throw;
  }
  return format_message("{}: {} parameters from {}, GGUF of {}, {}, {}, vocabulary {}, context {}{}",
      {file, with_commas(model.parameter_count()), path, theirs.type, name_of(numbers),
          tokenizer ? tokenizer->name() + " tokenizer" : "no tokenizer", config.vocab, config.ctx,
          (theirs.note.empty() ? "" : "; ") + theirs.note});
}

}  // namespace ricci::apps
