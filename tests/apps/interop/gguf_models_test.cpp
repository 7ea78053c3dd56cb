// Llama, Qwen2 and Qwen3 as GGUF files, against the folders of Hugging Face that they came from.
#include "apps/interop/gguf_models.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <numbers>

#include "apps/interop/foreign_model.h"
#include "apps/interop/gguf.h"
#include "apps/interop/their_tokenizer.h"
#include "tests/apps/interop/gguf_reader.h"
#include "tests/apps/interop/stored_folders.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

GgufFile exported(const ScratchFolder& scratch, const std::string& name, GgufNumbers numbers = GgufNumbers::f32) {
  import_hugging_face(kModels + name, scratch / "run", {});
  const std::string path = scratch / "a.gguf";
  const std::string type = name.substr(0, 5);
  CHECK(contains(export_gguf(scratch / "run", "last", path, numbers, false), "GGUF of " + type + ", " + name_of(numbers) + ", no token"));
  return Reader(read_file(path)).file();
}

// The rows of every head in the order of llama.cpp: the first column of each pair, the second, the first of the next pair.
Tensor neighbours(const Tensor& w, int64_t width) {
  const Tensor y(w.shape(), Dtype::f32);
  const int64_t columns = w.shape()[1];
  for (int64_t head = 0; head * width < w.shape()[0]; ++head)
    for (int64_t pair = 0; pair < width / 2; ++pair)
      for (int64_t which = 0; which < 2; ++which)
        for (int64_t j = 0; j < columns; ++j)
          y.data<float>()[(head * width + 2 * pair + which) * columns + j] =
              w.data<float>()[(head * width + pair + which * width / 2) * columns + j];
  return y;
}

void check_tensor(const GgufFile& file, const std::string& name, const Tensor& expected) {
  CAPTURE(name);
  REQUIRE(file.tensors.contains(name));
  const GgufTensor& found = file.tensors.at(name);
  std::vector<int64_t> extents;
  for (int i = expected.shape().rank(); i-- > 0;) extents.push_back(expected.shape()[i]);
  CHECK(found.extents == extents);
  CHECK(found.type == 0);
  CHECK(found.bytes.substr(0, static_cast<size_t>(expected.bytes())) ==
        std::string(static_cast<const char*>(expected.raw()), static_cast<size_t>(expected.bytes())));
}

// A run of an imported model whose keys `change` has changed.
std::string refused(const std::function<void(ModelConfig&)>& change) {
  const ScratchFolder scratch;
  ModelConfig config;
  config.preset = Preset::llama;
  apply_preset(config);
  config.vocab = 11;
  config.ctx = 16;
  config.d = 8;
  config.layers = 1;
  config.settings<Sdp>().heads = 2;
  change(config);
  check(config);
  resolve(config);
  Model model(config);
  write_imported_run(scratch / "run", model, nullptr, "nowhere");
  const std::string error = error_of([&] { export_gguf(scratch / "run", "last", scratch / "a.gguf", GgufNumbers::f32, false); });
  CHECK(std::filesystem::exists(scratch / "a.gguf") == (error == "no error"));
  return error;
}

}  // namespace

TEST_CASE("GGUF: Llama and Qwen have the tensors of Hugging Face, and llama alone has neighbours in the place of halves") {
  for (const std::string name : {"llama", "qwen2_bf16", "qwen3"}) {
    CAPTURE(name);
    const ScratchFolder scratch;
    const GgufFile file = exported(scratch, name);
    const SafetensorsFile theirs(kModels + name + "/model.safetensors");
    const auto take = [&](const std::string& tensor) { return theirs.load_f32(tensor); };
    size_t seen = name == "llama";  // rope_freqs.weight
    const auto check = [&](const std::string& gguf, const std::string& tensor) {
      const bool is_permuted = name == "llama" && (contains(gguf, "attn_q") || contains(gguf, "attn_k"));
      check_tensor(file, gguf, is_permuted ? neighbours(take(tensor), 4) : take(tensor));
      ++seen;
    };
    for (const std::string block : {"0", "1"}) {
      const std::string here = "blk." + block + ".", there = "model.layers." + block + ".";
      for (const std::string part : {"q", "k", "v"}) {
        check(here + "attn_" + part + ".weight", there + "self_attn." + part + "_proj.weight");
        if (name == "qwen2_bf16") check(here + "attn_" + part + ".bias", there + "self_attn." + part + "_proj.bias");
        if (name == "qwen3" && part != "v") check(here + "attn_" + part + "_norm.weight", there + "self_attn." + part + "_norm.weight");
      }
      for (const auto& [ours, other] :
          {std::pair("attn_norm", "input_layernorm"), {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
              {"ffn_gate", "mlp.gate_proj"}, {"ffn_up", "mlp.up_proj"}, {"ffn_down", "mlp.down_proj"}})
        check(here + ours + ".weight", there + other + ".weight");
    }
    check("token_embd.weight", "model.embed_tokens.weight");
    check("output_norm.weight", "model.norm.weight");
    if (name == "qwen3") check("output.weight", "lm_head.weight");
    CHECK(file.tensors.size() == seen);
  }
}

TEST_CASE("GGUF: the keys of Llama and Qwen") {
  for (const auto& [name, heads, width, theta] :
      {std::tuple("llama", 1u, 4u, 500.0f), {"qwen2_bf16", 1u, 4u, 10000.0f}, {"qwen3", 1u, 6u, 10000.0f}}) {
    const char* const model = name;
    CAPTURE(model);
    const ScratchFolder scratch;
    GgufFile file = exported(scratch, name);
    const std::string type = std::string(name).substr(0, 5);
    CHECK(file.values["general.architecture"] == "8:" + type);
    CHECK(file.values["general.file_type"] == with_type<uint32_t>(4, 0));
    for (const auto& [key, value] : {std::pair("context_length", 9u), {"embedding_length", 8u}, {"block_count", 2u},
             {"feed_forward_length", 12u}, {"attention.head_count", 2u}, {"attention.head_count_kv", heads},
             {"attention.key_length", width}, {"attention.value_length", width}, {"rope.dimension_count", width}, {"vocab_size", 11u}})
      CHECK(file.values[type + "." + key] == with_type<uint32_t>(4, value));
    CHECK(file.values[type + ".attention.layer_norm_rms_epsilon"] == with_type<float>(6, 1e-6f));
    CHECK(file.values[type + ".rope.freq_base"] == with_type<float>(6, theta));
    CHECK(!file.values.contains(type + ".rope.scaling.type"));
    CHECK(file.values.size() == 16);  // with general.name and tokenizer.ggml.model
  }
}

TEST_CASE("GGUF: matrices of 8 bits in blocks of 32, the same after the permutation") {
  const ScratchFolder scratch;
  ModelConfig config;
  config.preset = Preset::llama;
  apply_preset(config);
  config.vocab = 5;
  config.ctx = 8;
  config.d = 32;
  config.layers = 1;
  config.settings<Sdp>().heads = 2;
  config.settings<Sdp>().kv_heads = 1;
  config.block.ff = 40;
  resolve(config);
  Model model(config);
  write_imported_run(scratch / "run", model, nullptr, "nowhere");
  export_gguf(scratch / "run", "last", scratch / "a.gguf", GgufNumbers::q8_0, false);
  const GgufFile file = Reader(read_file(scratch / "a.gguf")).file();
  const Tensor qkv = SafetensorsFile(scratch / "run/model.safetensors").load_f32("blocks.0.mixer.qkv.weight");
  const Tensor q = neighbours(qkv.rows(0, 32), 16), v = qkv.rows(48, 16);
  for (const auto& [name, value] : {std::pair("blk.0.attn_q.weight", q), {"blk.0.attn_v.weight", v}}) {
    const std::string bytes = gguf_bytes({value.data<float>(), static_cast<size_t>(value.size())}, GgufNumbers::q8_0);
    CHECK(file.tensors.at(name).type == 8);
    CHECK(file.tensors.at(name).bytes.substr(0, bytes.size()) == bytes);
  }
  CHECK(file.tensors.at("blk.0.ffn_down.weight").type == 1);  // rows of 40
  CHECK(file.tensors.at("blk.0.attn_norm.weight").type == 0);
}

TEST_CASE("GGUF: scaled rotary positions") {
  const ScratchFolder scratch;
  const GgufFile file = exported(scratch, "llama");
  REQUIRE(file.tensors.at("rope_freqs.weight").extents == std::vector<int64_t>{2});
  float divisors[2];
  std::memcpy(divisors, file.tensors.at("rope_freqs.weight").bytes.data(), sizeof divisors);
  // Factor 4, low 1, high 4, trained on 16 positions: wavelengths of 2 pi, which goes over, and of 2 pi sqrt(500), which is long.
  const double turns = 16 / (2 * std::numbers::pi), kept = (turns - 1) / 3;
  CHECK(divisors[0] == doctest::Approx(1 / ((1 - kept) / 4 + kept)).epsilon(1e-6));
  CHECK(divisors[1] == 4);

  ModelConfig config;
  config.preset = Preset::llama;
  apply_preset(config);
  config.vocab = 5;
  config.embedding.rope.scaling = RopeScaling::linear;
  config.embedding.rope.factor = 2.5;
  resolve(config);
  Model model(config);
  const GgufModel linear = gguf_model(model);
  const auto value = [&](const std::string& key) {
    for (const auto& [name, each] : linear.keys)
      if (name == key) return each;
    return std::variant<uint32_t, float, std::string>("none");
  };
  CHECK(std::get<std::string>(value("rope.scaling.type")) == "linear");
  CHECK(std::get<float>(value("rope.scaling.factor")) == 2.5f);
  for (const auto& [name, tensor] : linear.tensors) CHECK(name != "rope_freqs.weight");
}

TEST_CASE("GGUF: models with rotary positions that llama.cpp does not know") {
  CHECK(refused([](ModelConfig&) {}) == "no error");
  CHECK(refused([](ModelConfig& c) { c.settings<Sdp>().window = 3; }) == "model.window: 3 has no equivalent in llama");
  CHECK(refused([](ModelConfig& c) { c.embedding.rope_fraction = 0.5; }) == "model.rope_fraction: 0.5 has no equivalent in llama");
  CHECK(refused([](ModelConfig& c) { c.block.norm_kind = NormKind::layer; }) == "model.norm_kind: layer has no equivalent in llama");
  CHECK(refused([](ModelConfig& c) { c.block.activation = Activation::relu2; }) == "model.activation: relu2 has no equivalent in llama");
  CHECK(refused([](ModelConfig& c) { c.block.gated = false; }) == "model.gated: false has no equivalent in llama");
  CHECK(refused([](ModelConfig& c) { c.settings<Sdp>().qk_norm = *(c.settings<Sdp>().qkv_bias = true); }) ==
        "model.qkv_bias: true has no equivalent in qwen3");
  const auto scaled = [](ModelConfig& c) { c.embedding.rope.scaling = RopeScaling::llama3; };
  CHECK(refused(scaled) == "no error");
  CHECK(refused([&](ModelConfig& c) {
    scaled(c);
    c.settings<Sdp>().qkv_bias = true;
  }) == "model.rope_scaling: llama3 has no equivalent in GGUF's qwen2");
  CHECK(refused([&](ModelConfig& c) {
    scaled(c);
    c.settings<Sdp>().qk_norm = true;
  }) == "model.rope_scaling: llama3 has no equivalent in GGUF's qwen3");
}

TEST_CASE("GGUF: the template of conversations in Jinja") {
  CHECK(chat_jinja(chat_template({"chatml"})) ==
        R"j({{ "" }}{% for message in messages %}{% if message["role"] == "system" %})j"
        R"j({{ "<|im_start|>system\n" + message["content"] + "<|im_end|>\n" }}{% elif message["role"] == "user" %})j"
        R"j({{ "<|im_start|>user\n" + message["content"] + "<|im_end|>\n" }}{% elif message["role"] == "assistant" %})j"
        R"j({{ "<|im_start|>assistant\n" + message["content"] + "<|im_end|>\n" }})j"
        R"j({% else %}{{ raise_exception("a role other than system, user and assistant") }}{% endif %}{% endfor %})j"
        R"j({% if add_generation_prompt %}{{ "<|im_start|>assistant\n" }}{% endif %})j");
  const std::string llama3 = chat_jinja(chat_template({"llama3"}));
  CHECK(llama3.starts_with(R"j({{ "<|begin_of_text|>" }})j"));
  CHECK(contains(llama3, R"j(user<|end_header_id|>\n\n" + message["content"] | trim + "<|eot_id|>" }})j"));
  CHECK(contains(chat_jinja(chat_template({"", "'{content}\"\\", "{content}", "{content}E", "E", ""})),
      R"j({{ "'" + message["content"] + "\"\\" }})j"));
}
