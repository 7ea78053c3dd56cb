// Small models of Hugging Face's transformers (tests/interop) become run folders with the logits of transformers, and folders again with
// the same tensors. A config.json without an equivalent model gives one line and leaves no run.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "apps/interop/hugging_face.h"
#include "apps/interop/interop.h"
#include "apps/run/config.h"
#include "apps/run/run_folder.h"
#include "core/json.h"
#include "cuda/device/device.h"
#include "tests/apps/interop/stored_folders.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;
constexpr auto kOptional = RunFolder::Vocabulary::optional;

namespace {

ModelConfig read_config(const std::string& path, double dropout) { return read_hf_config(read_json(path), path, dropout); }

// Replaces the number of a key of the file.
void replace_number(const Copy& copy, const std::string& key, const std::string& value) {
  const std::string text = read_file(copy.theirs() + "/config.json"), quoted = "\"" + key + "\": ";
  const size_t at = text.find(quoted);
  REQUIRE(at != text.npos);
  const size_t begin = at + quoted.size();
  copy.replace(text.substr(at, text.find_first_of(",\n}", begin) - at), quoted + value);
}

}  // namespace

TEST_CASE("Hugging Face: stored models have the stored logits, and go back as they came") {
  for (const auto& [each, type] : {std::pair("gpt2", "GPT-2"), {"untied_bf16", "GPT-2"}, {"bare_f16", "GPT-2"}, {"llama", "llama"},
           {"qwen2_bf16", "qwen2"}, {"qwen3", "qwen3"}}) {
    const std::string name = each;
    CAPTURE(name);
    const ScratchFolder scratch;
    const std::string line = import_hugging_face(kModels + name, scratch / "run", {});
    CHECK(contains(line, "parameters from " + kModels + name + "\nno tokenizer, vocabulary 11, context 9"));
    const double error = largest_error(load_run(scratch / "run"), name);
    CHECK(error < 1e-5);

    const std::string written = export_hugging_face(scratch / "run", scratch / "back");
    CHECK(contains(written, "\n" + std::string(type) + ", no tokenizer, vocabulary 11, context 9"));
    const SafetensorsFile theirs(kModels + name + "/model.safetensors"), back(scratch / "back/model.safetensors");
    CHECK(back.metadata() == Metadata{{"checksum", back.metadata().at("checksum")}, {"format", "pt"}});
    CHECK_NOTHROW(back.verify());
    CHECK(back.names().size() == theirs.names().size());
    for (const std::string& tensor : theirs.names())
      check_same_values(back, name == "bare_f16" ? "transformer." + tensor : tensor, theirs, tensor);

    import_hugging_face(scratch / "back", scratch / "again", {});
    const auto config = [&](const char* run) { return to_yaml(RunFolder::open(scratch / run, kOptional).config().model); };
    CHECK(config("again") == config("run"));
    CHECK(largest_error(load_run(scratch / "again"), name) == error);
  }
}

TEST_CASE("Hugging Face: each flipped bit of an exported folder is noticed") {
  const ScratchFolder scratch;
  import_hugging_face(kModels + "llama", scratch / "run", {});
  export_hugging_face(scratch / "run", scratch / "theirs");
  const std::string path = scratch / "theirs/model.safetensors", whole = read_file(path),
                    damaged = ": damaged: its bytes do not match its checksum";
  const size_t data = 8 + whole.find("}}") + 2, digits = whole.find("checksum\":\"") + 11;
  REQUIRE(data < whole.size());
  for (const size_t byte : {size_t{0}, size_t{3}, digits, digits + 15, whole.find("\"pt\"") + 1, whole.find("model.norm"), data + 8,
           data + 100, whole.size() / 2, whole.size() - 1})
    for (const int bit : {0, 6}) {
      std::string flipped = whole;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      scratch.write("theirs/model.safetensors", flipped);
      const std::string error = error_of([&] { import_hugging_face(scratch / "theirs", scratch / "again", {}); });
      CAPTURE(byte);
      CHECK(error.starts_with(path + ": "));
      if (byte >= digits) CHECK(error == path + damaged);
    }
  // Other programs can store a different kind of checksum.
  std::string foreign = whole;
  foreign.insert(digits, "0123456789abcdef");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, foreign.data(), sizeof header_bytes);
  header_bytes += 16;
  std::memcpy(foreign.data(), &header_bytes, sizeof header_bytes);
  scratch.write("theirs/model.safetensors", foreign);
  CHECK_NOTHROW(import_hugging_face(scratch / "theirs", scratch / "again", {}));
}

TEST_CASE("Llama: the config of an imported run, and config.json again") {
  const ScratchFolder scratch;
  const ModelConfig c = read_config(kModels + "llama/config.json", 0.2);
  const RotaryFrequencies& rope = c.embedding.rope;
  CHECK(std::vector<int64_t>{c.vocab, c.ctx, c.d, c.layers, *c.block.ff, c.settings<Sdp>().heads, c.settings<Sdp>().key_heads()} ==
        std::vector<int64_t>{11, 9, 8, 2, 12, 2, 1});
  CHECK(rope.scaling == RopeScaling::llama3);
  CHECK(std::vector<double>{rope.theta, rope.factor, rope.low, rope.high, static_cast<double>(rope.trained_ctx)} ==
        std::vector<double>{500, 4, 1, 4, 16});
  CHECK(c.block.norm_eps == 1e-6);
  CHECK(c.block.dropout == 0.2);
  CHECK(c.output.tie);
  const std::string json = hf_config_json(c, {.begin = 1, .ends = {2, 3}});
  for (const char* part : {"\"model_type\": \"llama\"", "\"LlamaForCausalLM\"", "\"rope_theta\": 500", "\"rope_type\": \"llama3\"",
           "\"head_dim\": 4", "\"torch_dtype\": \"float32\"", "\"max_position_embeddings\": 9"})
    CHECK(contains(json, part));
  scratch.write("config.json", json);
  CHECK(to_yaml(read_config(scratch / "config.json", -1)) == to_yaml(c));

  Copy long_one("llama");
  long_one.replace("\"max_position_embeddings\": 9", "\"max_position_embeddings\": 131072");
  import_hugging_face(long_one.theirs(), scratch / "run", {});
  const TrainConfig run = RunFolder::open(scratch / "run", kOptional).config();
  CHECK(run.model.ctx == 131072);
  CHECK(run.context == 2048);
}

TEST_CASE("Llama: names without model., frequencies, an output map that is stored twice") {
  const Copy copy("qwen2_bf16");
  copy.weights([](auto& tensors) {
    for (auto& [name, tensor] : tensors) name = name.substr(std::string("model.").size());
    tensors.emplace_back("layers.1.self_attn.rotary_emb.inv_freq", Tensor({2}));
    const auto table = std::find_if(tensors.begin(), tensors.end(), [](const auto& t) { return t.first == "embed_tokens.weight"; });
    tensors.emplace_back("lm_head.weight", Tensor(table->second));
  });
  copy.replace("Qwen2ForCausalLM", "Qwen2Model");
  import_hugging_face(copy.theirs(), copy.folder / "run", {});
  CHECK(largest_error(load_run(copy.folder / "run"), "qwen2_bf16") < 1e-5);
}

TEST_CASE("GPT-2: the config of an imported run") {
  const ScratchFolder scratch;
  import_hugging_face(kModels + "bare_f16", scratch / "run", {});
  const TrainConfig config = RunFolder::open(scratch / "run", kOptional).config();
  CHECK(config.name == "run");
  CHECK(config.sequence_length() == 9);
  ModelConfig expected;
  expected.vocab = 11, expected.ctx = 9, expected.d = 8, expected.layers = 2, expected.settings<Sdp>().heads = 2;
  expected.block.ff = 12, expected.block.activation = Activation::relu, expected.block.dropout = 0.1;
  CHECK(to_yaml(config.model) == to_yaml(expected));
  const std::string text = read_file(scratch / "run/config.yaml");  // a comment, and only the keys that differ from their defaults
  CHECK(text.substr(text.find('\n') + 1) ==
        "model:\n  vocab: 11\n  ctx: 9\n  d: 8\n  layers: 2\n  heads: 2\n  activation: relu\n  ff: 12\n  dropout: 0.1\n"
        "data: []\n");
  CHECK(error_of([&] { RunFolder::open(scratch / "run"); }) ==
        (scratch / "run/tokenizer.json") + ": is missing; a model that was imported without a tokenizer reads and writes no text");
  CHECK(contains(error_of([&] { import_hugging_face(kModels + "gpt2", scratch / "run", {}); }),
      "run: contains a trained model but no checkpoint to continue from"));
}

TEST_CASE("GPT-2: multiple files with an index, masks, and an output map that is stored twice") {
  const Copy copy("gpt2");
  copy.weights(
      [](auto& tensors) {
        tensors.resize(3);
        tensors.emplace_back("transformer.h.0.attn.bias", Tensor({1, 1, 9, 9}));
      },
      "a.safetensors");
  const SafetensorsFile a(copy.theirs() + "/a.safetensors"), all(kModels + "gpt2/model.safetensors");
  copy.weights(
      [&](auto& tensors) {
        tensors.erase(tensors.begin(), tensors.begin() + 3);
        tensors.emplace_back("lm_head.weight", all.load("transformer.wte.weight"));
      },
      "b.safetensors");
  const SafetensorsFile b(copy.theirs() + "/b.safetensors");
  std::string map;
  for (const auto* file : {&a, &b})
    for (const std::string& name : file->names())
      map += (map.empty() ? "\"" : ", \"") + name + "\": \"" + (file == &a ? "a" : "b") + ".safetensors\"";
  copy.folder.write("theirs/model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
  std::filesystem::remove(copy.theirs() + "/model.safetensors");
  import_hugging_face(copy.theirs(), copy.folder / "run", {});
  CHECK(largest_error(load_run(copy.folder / "run"), "gpt2") < 1e-5);

  copy.folder.write("theirs/model.safetensors.index.json", R"({"weight_map": {"x": "../b.safetensors"}})");
  std::filesystem::remove_all(copy.folder / "run");
  CHECK(copy.refused() == "FOLDER/model.safetensors.index.json: '../b.safetensors' is not a file in this folder");
  copy.folder.write("theirs/model.safetensors.index.json", R"({"weight_map": {"x": "b.safetensors"}})");
  CHECK(copy.refused() == "FOLDER/model.safetensors.index.json: tensor x is not in b.safetensors");
  copy.folder.write("theirs/model.safetensors.index.json", R"({"weight_map": 3})");
  CHECK(copy.refused() == "FOLDER/model.safetensors.index.json: weight_map: 3, expected an object with string members");
}

TEST_CASE("Hugging Face: a setting without an equivalent is named, and no run is left") {
  const std::string none = " has no equivalent in ricci", turns = "; expected default, linear or llama3",
                    known = ", expected gpt2, llama, qwen2 or qwen3";
  const struct {
    const char *model, *from, *to;
    std::string error;
  } cases[] = {
      {"gpt2", R"("gpt2")", R"("opt")", "model_type is opt" + known},
      {"gpt2", "GPT2LMHeadModel", "GPT2ForAnything", "architectures: GPT2ForAnything, expected GPT2LMHeadModel or GPT2Model"},
      {"gpt2", "gelu_new", "silu", "activation_function: silu" + none + "; expected gelu_new, gelu_pytorch_tanh, gelu or relu"},
      {"gpt2", R"(inverse_layer_idx": false)", R"(inverse_layer_idx": true)", "scale_attn_by_inverse_layer_idx: true" + none},
      {"gpt2", R"(scale_attn_weights": true)", R"(scale_attn_weights": false)", "scale_attn_weights: false" + none},
      {"gpt2", R"(cross_attention": false)", R"(cross_attention": true)", "add_cross_attention: true" + none},
      {"gpt2", "1e-05", "-1e-05", "layer_norm_epsilon: -1e-05, expected more than 0"},
      {"gpt2", R"(attn_pdrop": 0.1)", R"(attn_pdrop": 0)",
          "embd_pdrop, attn_pdrop and resid_pdrop are 0.1, 0 and 0.1, but ricci has only one dropout rate; choose a rate with --dropout"},
      {"gpt2", R"("n_layer": 2)", R"("n_layer": "2")", R"(n_layer: "2", expected an integer)"},
      {"gpt2", R"("n_layer")", R"("layers")", "n_layer is missing"},
      {"gpt2", R"("n_head": 2)", R"("n_head": 3)", "n_head: 3 does not divide n_embd = 8"},
      {"llama", R"("model_type": "llama")", R"("model_type": "mistral")", "model_type is mistral" + known},
      {"llama", "LlamaForCausalLM", "LlamaForAll", "architectures: LlamaForAll, expected LlamaForCausalLM or LlamaModel"},
      {"llama", R"("silu")", R"("gelu")", "hidden_act: gelu" + none},
      {"llama", R"(attention_bias": false)", R"(attention_bias": true)", "attention_bias: true" + none},
      {"llama", R"(mlp_bias": false)", R"(mlp_bias": true)", "mlp_bias: true" + none},
      {"qwen3", R"(use_sliding_window": false)", R"(use_sliding_window": true)", "use_sliding_window: true" + none},
      {"qwen3", "full_attention", "sliding_attention", "layer_types: sliding_attention" + none},
      {"llama", "{", R"({"rope_interleaved": true,)", "rope_interleaved: true" + none},
      {"llama", "{", R"({"quantization_config": {"bits": 4},)", "quantization_config: quantized weights have no equivalent in ricci"},
      {"llama", "{", R"({"partial_rotary_factor": 0.5,)", "partial_rotary_factor: 0.5" + none},
      {"llama", R"("llama3")", R"("yarn")", "rope_parameters: rope_type: yarn" + none + turns},
      {"llama", R"("low_freq_factor")", R"("low")", "rope_parameters: low_freq_factor is missing"},
      {"qwen2_bf16", R"(rope_scaling": null)", R"(rope_scaling": {"type": "dynamic"})", "rope_scaling: rope_type: dynamic" + none + turns},
      {"qwen2_bf16", R"(rope_scaling": null)", R"(rope_scaling": {"type": "linear"})", "rope_scaling: factor is missing"},
      {"qwen2_bf16", R"(rope_scaling": null)", R"(rope_scaling": 2)", "rope_scaling: expected a JSON object"},
      {"qwen3", R"("head_dim": 6)", R"("head_dim": 5)", "head_dim: 5 is odd, but rotary positions need pairs of columns"},
      {"llama", R"("num_key_value_heads": 1)", R"("num_key_value_heads": 3)",
          "num_key_value_heads: 3 does not divide num_attention_heads = 2"},
      {"llama", R"("hidden_size")", R"("n_embd")", "hidden_size is missing"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.error);
    const Copy copy(one.model);
    copy.replace(one.from, one.to);
    CHECK(copy.refused() == "FOLDER/config.json: " + one.error);
  }
  const Copy list("gpt2");
  list.folder.write("theirs/config.json", "[]");
  CHECK(list.refused() == "FOLDER/config.json: expected a JSON object");
  list.folder.write("theirs/config.json", R"({"n_layer": 2, "n_layer": 3})");
  CHECK(contains(list.refused(), "FOLDER/config.json: "));
  CHECK(contains(list.refused(), "n_layer"));
  list.folder.write("theirs/config.json", "[{");
  CHECK(list.refused().starts_with("FOLDER/config.json: invalid JSON at byte "));
}

TEST_CASE("Hugging Face: a refusal names the key of the file and its value") {
  const std::vector<const char*> sizes = {"0", "-1", "1.5", "9223372036854775807", R"("2")", "true", "[2]"}, heads = {"3"},
                                 reals = {"-1", "0", R"("1")", "true"}, rates = {"-1", "1", R"("0")"}, flags = {"1", R"("true")"},
                                 texts = {"3", "[\"gelu\"]"}, lists = {R"("a")", "[3]", "{}"};
  using Keys = std::vector<std::pair<const char*, std::vector<const char*>>>;
  const Keys of_gpt2 = {{"vocab_size", sizes}, {"n_positions", sizes}, {"n_embd", sizes}, {"n_layer", sizes}, {"n_head", sizes},
      {"n_head", heads}, {"n_inner", sizes}, {"layer_norm_epsilon", reals}, {"embd_pdrop", rates}, {"attn_pdrop", rates},
      {"resid_pdrop", rates}, {"tie_word_embeddings", flags}, {"scale_attn_weights", flags}, {"scale_attn_by_inverse_layer_idx", flags},
      {"add_cross_attention", flags}, {"activation_function", texts}, {"architectures", lists}, {"model_type", texts}};
  const Keys of_llama = {{"vocab_size", sizes}, {"max_position_embeddings", sizes}, {"hidden_size", sizes}, {"num_hidden_layers", sizes},
      {"num_attention_heads", sizes}, {"num_key_value_heads", sizes}, {"num_key_value_heads", heads}, {"head_dim", sizes},
      {"intermediate_size", sizes}, {"rms_norm_eps", reals}, {"attention_dropout", rates}, {"tie_word_embeddings", flags},
      {"attention_bias", flags}, {"mlp_bias", flags}, {"use_sliding_window", flags}, {"rope_interleaved", flags},
      {"partial_rotary_factor", reals}, {"hidden_act", texts}, {"layer_types", lists}, {"architectures", lists}, {"model_type", texts}};
  for (const auto& [model, keys] : {std::pair("gpt2", of_gpt2), {"llama", of_llama}, {"qwen2_bf16", of_llama}, {"qwen3", of_llama}})
    for (const auto& [key, values] : keys)
      for (const char* value : values) {
        const Copy copy(model);
        replace_member(copy, key, value);
        const std::string error = copy.refused();
        CAPTURE(error);
        CHECK(error.starts_with("FOLDER/config.json: "));
        CHECK(contains(error, key));
        CHECK(contains(error, value));
        CHECK(!contains(error, "model."));
      }
  for (const auto& [key, values] : Keys{{"factor", reals}, {"low_freq_factor", {"-1", "9", "true"}}, {"high_freq_factor", reals},
           {"original_max_position_embeddings", sizes}, {"rope_theta", reals}, {"rope_type", texts}})
    for (const char* value : values) {
      const Copy copy("llama");
      replace_number(copy, key, value);
      const std::string error = copy.refused();
      CAPTURE(error);
      CHECK(error.starts_with("FOLDER/config.json: "));
      CHECK(contains(error, std::string(key) + ": "));
      CHECK(contains(error, value));
    }
}

TEST_CASE("Hugging Face: models of ours that theirs cannot be") {
  using Change = void (*)(ModelConfig&);
  const auto as_gpt2 = [](Change change) {
    ModelConfig config;
    config.vocab = 5;
    change(config);
    return error_of([&] { hf_config_json(config, {}); });
  };
  const auto as_llama = [](Change change) {
    ModelConfig config;
    config.preset = Preset::llama;
    apply_preset(config);
    change(config);
    std::string type;
    const std::string error = error_of([&] { type = hf_model_type(config); });
    return error == "no error" ? type : error;
  };
  const auto cannot = [](const char* key, const char* type) { return format_message("model.{} has no equivalent in {}", {key, type}); };
  const std::pair<const char*, Change> neither[] = {{"family: classifier", [](ModelConfig& c) { c.family = family_of<Classifier>; }},
      {"norm: post", [](ModelConfig& c) { c.block.norm = Norm::post; }}, {"causal: false", [](ModelConfig& c) { c.causal = false; }},
      {"activation: relu2", [](ModelConfig& c) { c.block.activation = Activation::relu2; }},
      {"window: 3", [](ModelConfig& c) { c.settings<Sdp>().window = 3; }},
      {"scale_embedding: true", [](ModelConfig& c) { c.embedding.scale_embedding = true; }},
      {"head_bias: true", [](ModelConfig& c) { c.output.head_bias = true; }}};
  for (const auto& [key, change] : neither) {
    CHECK(as_gpt2(change) == cannot(key, "GPT-2"));
    CHECK(as_llama(change) == cannot(key, "llama"));
  }
  const std::pair<const char*, Change> not_gpt2[] = {{"mixer: avgpool", [](ModelConfig& c) { c.mixer = kind_of<AveragePool>; }},
      {"norm_kind: rms", [](ModelConfig& c) { c.block.norm_kind = NormKind::rms; }},
      {"qk_norm: true", [](ModelConfig& c) { c.settings<Sdp>().qk_norm = true; }},
      {"gated: true", [](ModelConfig& c) { c.block.gated = true; }},
      {"positions: none", [](ModelConfig& c) { c.embedding.positions = PositionKind::none; }}};
  for (const auto& [key, change] : not_gpt2) CHECK(as_gpt2(change) == cannot(key, "GPT-2"));
  const std::pair<const char*, Change> not_llama[] = {{"norm_kind: layer", [](ModelConfig& c) { c.block.norm_kind = NormKind::layer; }},
      {"gated: false", [](ModelConfig& c) { c.block.gated = false; }}, {"bias: true", [](ModelConfig& c) { c.block.bias = true; }},
      {"rope_fraction: 0.5", [](ModelConfig& c) { c.embedding.rope_fraction = 0.5; }}};
  for (const auto& [key, change] : not_llama) CHECK(as_llama(change) == cannot(key, "llama"));
  CHECK(as_gpt2([](ModelConfig&) {}) == "no error");
  CHECK(as_gpt2([](ModelConfig& c) { c.settings<Sdp>().window = 64; }) == "no error");
  CHECK(as_llama([](ModelConfig&) {}) == "llama");
  CHECK(as_llama([](ModelConfig& c) { c.settings<Sdp>().qkv_bias = true; }) == "qwen2");
  CHECK(as_llama([](ModelConfig& c) { c.settings<Sdp>().qk_norm = true; }) == "qwen3");
  CHECK(as_llama([](ModelConfig& c) { c.settings<Sdp>().qk_norm = *(c.settings<Sdp>().qkv_bias = true); }) ==
        cannot("qkv_bias: true", "qwen3"));
  CHECK(as_llama([](ModelConfig& c) { c.d = 62; }) == "model.heads: 4, expected a divisor of d = 62 for llama");
}

TEST_CASE("GPT-2: weights that do not fit") {
  const auto refused = [](const std::function<void(std::vector<std::pair<std::string, Tensor>>&)>& change) {
    const Copy copy("gpt2");
    copy.weights(change);
    return copy.refused();
  };
  const auto find = [](auto& tensors, const std::string& name) {
    return std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.first == "transformer." + name; });
  };
  CHECK(refused([&](auto& t) { t.erase(find(t, "h.1.attn.c_attn.weight")); }) ==
        "FOLDER: tensor transformer.h.1.attn.c_attn.weight of shape [8 24] is missing");
  CHECK(refused([&](auto& t) { t.emplace_back("transformer.h.2.ln_1.bias", Tensor({8})); }) ==
        "FOLDER: tensor transformer.h.2.ln_1.bias of shape [8] does not belong to this GPT-2 model");
  CHECK(refused([&](auto& t) {
    find(t, "wpe.weight")->second = Tensor({8, 8});
  }) == "FOLDER/model.safetensors: tensor transformer.wpe.weight is [8 8], expected [9 8]");
  CHECK(refused([&](auto& t) { find(t, "ln_f.bias")->second = Tensor({8}, Dtype::f64); }) ==
        "FOLDER/model.safetensors: tensor 'transformer.ln_f.bias' is F64, expected F32, BF16 or F16");
}

TEST_CASE("GPT-2: the tokenizer of a folder") {
  const Copy copy("gpt2");
  copy.folder.write("theirs/tokenizer.json", R"({"name":"byte"})");
  CHECK(copy.refused() ==
        "FOLDER: the tokenizer has 256 tokens, but config.json has vocab_size = 11; add --without-tokenizer to omit the tokenizer");
  copy.folder.write("theirs/tokenizer.json", R"({"name":"char","characters":"abcdefghijk"})");
  CHECK(contains(import_hugging_face(copy.theirs(), copy.folder / "run", 0.3), "\nchar tokenizer, vocabulary 11"));
  const RunFolder run = RunFolder::open(copy.folder / "run");
  CHECK(run.tokenizer()->encode("cab") == std::vector<int64_t>{2, 0, 1});
  CHECK(run.config().model.block.dropout == 0.3);
}

TEST_CASE("a chat template is known only if it writes conversations as ours") {
  const auto name = [](const std::string& jinja, const std::string& bos = "") { return known_template(jinja, bos).name; };
  const std::string loop = "{% for message in messages %}", end = "{% endfor %}",
                    prompt = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
  const std::string message = "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}";
  const auto chatml = [&](const std::string& in_loop) { return name(loop + in_loop + end + prompt); };
  CHECK(chatml(message) == "chatml");
  CHECK(name(loop + message + end) == "chatml");
  CHECK(name("{# <|im_start|> #}" + loop + "\n    {{- " + message.substr(3) + "\n{%- endfor %}\n" + prompt + "\n") == "chatml");
  CHECK(chatml("{{ \"<|im_start|>\" }}{{ message.role }}{{ '\n' }}{{ message.content }}{{ '<|im_end|>\\n' }}") == "chatml");
  CHECK(name(to_jinja(chat_template({"chatml"}))) == "chatml");
  CHECK(name(to_jinja(chat_template({"llama3"}))) == "llama3");
  const std::string system =
      "{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nHelp.<|im_end|>\\n' }}{% endif %}";
  CHECK(known_template(loop + system + message + end, "").adds_system);
  for (const std::string& other : {"{{ bos_token }}" + loop + message + end, loop + message + "\n" + end, "a" + loop + message + end,
           loop + "{{ bos_token }}" + message + end, loop + message + end + "b", loop + message + message + end})
    CHECK(name(other) == "");
  CHECK(chatml("{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' }}") == "");
  CHECK(chatml("{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>\\n' }}") == "");
  CHECK(chatml("{{ '<|im_start|> ' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}") == "");
  const std::string llama3 =
      "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + "
      "message['content'] | "
      "trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}";
  CHECK(name("{% set loop_messages = messages %}{% for message in loop_messages %}" + llama3.substr(loop.size()), "<|begin_of_text|>") ==
        "llama3");
  CHECK(name("{% set loop_messages = messages %}{% for message in loop_messages %}" + llama3.substr(loop.size()), "<s>") == "");
  for (const char* torn : {"", "{", "{{", "{%", "{#", "{{ '", "{{ '\\", "{{-", "{#-", "{% for", "a{", "}}{{", "\n"})
    CHECK(name(torn) == "");
}

TEST_CASE("GPT-2: biases that a model does without are zeros there") {
  ModelConfig config;
  config.vocab = 5, config.ctx = 6, config.d = 4, config.layers = 1, config.settings<Sdp>().heads = 1;
  config.block.bias = config.block.norm_bias = false;
  Model model(config);
  model.init(1);
  const auto tensors = export_weights(model);
  CHECK(tensors.size() == 16);
  for (const auto& entry : tensors) {
    const std::string& name = entry.first;
    const Tensor& tensor = entry.second;
    CAPTURE(name);
    double sum = 0;
    for (int64_t i = 0; i < tensor.size(); ++i) sum += std::abs(static_cast<double>(tensor.data<float>()[i]));
    CHECK((sum == 0) == name.ends_with("bias"));
  }
}
