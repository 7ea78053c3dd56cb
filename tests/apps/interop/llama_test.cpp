// Small models of Llama, Qwen2 and Qwen3 that Hugging Face's transformers wrote (tests/interop/hugging_face.py): run folders with the
// logits that it computed, and folders again with its tensors.

#include "apps/interop/llama.h"

#include <doctest/doctest.h>

#include "apps/interop/interop.h"
#include "apps/interop/json_file.h"
#include "apps/run/folder/run_folder.h"
#include "cuda/device/device.h"
#include "tests/apps/interop/stored_folders.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;
using Vocabulary = RunFolder::Vocabulary;

TEST_CASE("Llama: stored models have the stored logits, and go back as they came") {
  for (const std::string name : {"llama", "qwen2_bf16", "qwen3"}) {
    CAPTURE(name);
    const ScratchFolder scratch;
    const std::string line = import_hugging_face(kModels + name, scratch / "run", {});
    CHECK(contains(line, "parameters from " + kModels + name + ", no tokenizer, vocabulary 11, context 9"));
    CHECK(largest_error(load_run(scratch / "run"), name) < 1e-5);

    const std::string type = name.substr(0, 5);
    CHECK(
        contains(export_hugging_face(scratch / "run", "last", scratch / "back"), " " + type + ", no tokenizer, vocabulary 11, context 9"));
    const SafetensorsFile theirs(kModels + name + "/model.safetensors"), back(scratch / "back/model.safetensors");
    CHECK(back.names().size() == theirs.names().size());
    for (const std::string& each : theirs.names()) check_same_values(back, each, theirs, each);

    import_hugging_face(scratch / "back", scratch / "again", {});
    const auto config = [&](const char* run) { return to_yaml(RunFolder::open(scratch / run, Vocabulary::optional).config().model); };
    CHECK(config("again") == config("run"));
    CHECK(largest_error(load_run(scratch / "again"), name) == largest_error(load_run(scratch / "run"), name));
  }
}

TEST_CASE("Llama: the config of an imported run, and config.json again") {
  const ScratchFolder scratch;
  const ModelConfig c = config_of_llama(JsonFile(kModels + "llama/config.json"), 0.2);
  const RotaryFrequencies& rope = c.embedding.rope;
  CHECK(std::vector<int64_t>{c.vocab, c.ctx, c.d, c.layers, *c.block.ff, c.settings<Sdp>().heads, c.settings<Sdp>().key_heads()} ==
        std::vector<int64_t>{11, 9, 8, 2, 12, 2, 1});
  CHECK(rope.scaling == RopeScaling::llama3);
  CHECK(std::vector<double>{rope.theta, rope.factor, rope.low, rope.high, static_cast<double>(rope.trained_ctx)} ==
        std::vector<double>{500, 4, 1, 4, 16});
  CHECK(c.block.norm_eps == 1e-6);
  CHECK(c.block.dropout == 0.2);
  CHECK(c.output.tie);
  const std::string json = llama_config_json(c, {.begin = 1, .ends = {2, 3}});
  for (const char* part : {"\"model_type\": \"llama\"", "\"LlamaForCausalLM\"", "\"rope_theta\": 500", "\"rope_type\": \"llama3\"",
           "\"head_dim\": 4", "\"torch_dtype\": \"float32\"", "\"max_position_embeddings\": 9"})
    CHECK(contains(json, part));
  scratch.write("config.json", json);
  CHECK(to_yaml(config_of_llama(JsonFile(scratch / "config.json"), -1)) == to_yaml(c));

  Copy long_one("llama");
  long_one.replace("\"max_position_embeddings\": 9", "\"max_position_embeddings\": 131072");
  import_hugging_face(long_one.theirs(), scratch / "run", {});
  const TrainConfig run = RunFolder::open(scratch / "run", Vocabulary::optional).config();
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

TEST_CASE("Llama: what ricci has no equivalent of is named, and no run is left") {
  const auto refused = [](const std::string& from, const std::string& to, const char* name = "llama") {
    const Copy copy(name);
    copy.replace(from, to);
    return copy.refused();
  };
  const auto with = [&](const std::string& member) { return refused("{", "{" + member + ","); };
  const std::string file = "FOLDER/config.json: ";
  CHECK(refused("\"model_type\": \"llama\"", "\"model_type\": \"mistral\"") ==
        file + "model_type is mistral; gpt2, llama, qwen2 and qwen3 can be converted");
  CHECK(refused("LlamaForCausalLM", "LlamaForTokenClassification") ==
        file + "architectures is LlamaForTokenClassification; LlamaForCausalLM and LlamaModel can be converted");
  CHECK(refused("\"silu\"", "\"gelu\"") == file + "hidden_act: gelu has no equivalent here");
  CHECK(refused("attention_bias\": false", "attention_bias\": true") == file + "attention_bias: true has no equivalent here");
  CHECK(refused("mlp_bias\": false", "mlp_bias\": true") == file + "mlp_bias: true has no equivalent here");
  CHECK(refused("use_sliding_window\": false", "use_sliding_window\": true", "qwen3") ==
        file + "use_sliding_window: true has no equivalent here");
  CHECK(refused("full_attention", "sliding_attention", "qwen3") == file + "layer_types: sliding_attention has no equivalent here");
  CHECK(with("\"rope_interleaved\": true") == file + "rope_interleaved: true has no equivalent here");
  CHECK(with("\"quantization_config\": {\"bits\": 4}") == file + "quantization_config: weights of fewer bits have no equivalent here");
  CHECK(with("\"partial_rotary_factor\": 0.5") == file + "partial_rotary_factor: 0.5 has no equivalent here");
  CHECK(refused("\"llama3\"", "\"yarn\"") ==
        file + "rope_parameters: rope_type: yarn has no equivalent here; there are default, linear, llama3");
  CHECK(refused("rope_scaling\": null", "rope_scaling\": {\"type\": \"dynamic\"}", "qwen2_bf16") ==
        file + "rope_scaling: rope_type: dynamic has no equivalent here; there are default, linear, llama3");
  CHECK(
      refused("rope_scaling\": null", "rope_scaling\": {\"type\": \"linear\"}", "qwen2_bf16") == file + "rope_scaling: factor is missing");
  CHECK(refused("rope_scaling\": null", "rope_scaling\": 2", "qwen2_bf16") == file + "rope_scaling: expected a JSON object");
  CHECK(refused("\"low_freq_factor\"", "\"low\"") == file + "rope_parameters: low_freq_factor is missing");
  CHECK(refused("\"head_dim\": 6", "\"head_dim\": 5", "qwen3") == file + "head_dim: 5 is odd, so that its halves cannot turn");
  CHECK(refused("\"num_key_value_heads\": 1", "\"num_key_value_heads\": 3") == file + "model.kv_heads: 3 does not divide heads = 2");
  CHECK(refused("\"hidden_size\"", "\"n_embd\"") == file + "hidden_size is missing");
  CHECK(refused("\"num_attention_heads\": 2", "\"num_attention_heads\": 0").starts_with(file + "model.heads: 0"));
}

TEST_CASE("Llama: weights that do not fit") {
  const auto refused = [](const std::function<void(std::pair<std::string, Tensor>&)>& change) {
    const Copy copy("qwen3");
    copy.weights([&](auto& tensors) {
      for (auto& named : tensors) change(named);
    });
    return copy.refused();
  };
  CHECK(refused([](auto& t) {
    if (t.first == "model.layers.1.self_attn.k_proj.weight") t.first = "model.layers.1.self_attn.k.weight";
  }) == "FOLDER: tensor model.layers.1.self_attn.k_proj.weight [6 8] is missing");
  CHECK(refused([](auto& t) {
    if (t.first == "model.layers.0.mlp.up_proj.weight") t.second = Tensor({8, 8});
  }) == "FOLDER/model.safetensors: tensor model.layers.0.mlp.up_proj.weight is [8 8], expected [12 8]");
}

TEST_CASE("Llama: models of ours that none of them can be") {
  const auto type = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config;
    config.preset = Preset::llama;
    apply_preset(config);
    change(config);
    std::string found = "?";
    const std::string error = error_of([&] { found = llama_type(config); });
    return error == "no error" ? found : error;
  };
  CHECK(type([](ModelConfig&) {}) == "llama");
  CHECK(type([](ModelConfig& c) { c.settings<Sdp>().qkv_bias = true; }) == "qwen2");
  CHECK(type([](ModelConfig& c) { c.settings<Sdp>().qk_norm = true; }) == "qwen3");
  CHECK(type([](ModelConfig& c) { c.settings<Sdp>().qk_norm = *(c.settings<Sdp>().qkv_bias = true); }) ==
        "model.qkv_bias: true has no equivalent in qwen3");
  CHECK(type([](ModelConfig& c) { c.settings<Sdp>().window = 3; }) == "model.window: 3 has no equivalent in llama");
  CHECK(type([](ModelConfig& c) { c.family = family_of<Classifier>; }) == "model.family: classifier has no equivalent in llama");
  CHECK(type([](ModelConfig& c) { c.causal = false; }) == "model.causal: false has no equivalent in llama");
  CHECK(type([](ModelConfig& c) { c.block.norm = Norm::post; }) == "model.norm: post has no equivalent in llama");
  CHECK(type([](ModelConfig& c) { c.block.norm_kind = NormKind::layer; }) == "model.norm_kind: layer has no equivalent in llama");
  CHECK(type([](ModelConfig& c) { c.block.activation = Activation::relu2; }) == "model.activation: relu2 has no equivalent in llama");
  CHECK(type([](ModelConfig& c) { c.block.gated = false; }) == "model.gated: false has no equivalent in llama");
  CHECK(type([](ModelConfig& c) { c.block.bias = true; }) == "model.bias: true has no equivalent in llama");
  CHECK(type([](ModelConfig& c) { c.embedding.rope_fraction = 0.5; }) == "model.rope_fraction: 0.5 has no equivalent in llama");
  CHECK(type([](ModelConfig& c) { c.embedding.scale_embedding = true; }) == "model.scale_embedding: true has no equivalent in llama");
  CHECK(type([](ModelConfig& c) { c.output.head_bias = true; }) == "model.head_bias: true has no equivalent in llama");
  CHECK(type([](ModelConfig& c) { c.d = 62; }) == "model.heads: 4 does not divide d = 62, which llama asks for");
}
