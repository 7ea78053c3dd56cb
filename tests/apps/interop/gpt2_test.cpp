// Small models that Hugging Face's transformers wrote (tests/interop/hugging_face.py) become run folders with the logits that it computed,
// and folders again with the tensors that it wrote.

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "apps/interop/interop.h"
#include "apps/run/config/config.h"
#include "apps/run/folder/run_folder.h"
#include "cuda/device/device.h"
#include "tests/apps/interop/stored_folders.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;
using Vocabulary = RunFolder::Vocabulary;

TEST_CASE("GPT-2: stored models have the stored logits, and go back as they came") {
  for (const std::string name : {"gpt2", "untied_bf16", "bare_f16"}) {
    CAPTURE(name);
    const ScratchFolder scratch;
    const std::string line = import_hugging_face(kModels + name, scratch / "run", {});
    CHECK(contains(line, "parameters from " + kModels + name + ", no tokenizer, vocabulary 11, context 9"));
    CHECK(largest_error(load_run(scratch / "run"), name) < 1e-5);

    export_hugging_face(scratch / "run", "last", scratch / "back");
    const SafetensorsFile theirs(kModels + name + "/model.safetensors"), back(scratch / "back/model.safetensors");
    CHECK(back.metadata() == Metadata{{"format", "pt"}});
    CHECK(back.names().size() == theirs.names().size());
    for (const std::string& each : theirs.names()) check_same_values(back, name == "bare_f16" ? "transformer." + each : each, theirs, each);

    import_hugging_face(scratch / "back", scratch / "again", {});
    CHECK(largest_error(load_run(scratch / "again"), name) == largest_error(load_run(scratch / "run"), name));
  }
}

TEST_CASE("GPT-2: the config of an imported run") {
  const ScratchFolder scratch;
  import_hugging_face(kModels + "bare_f16", scratch / "run", {});
  const TrainConfig config = RunFolder::open(scratch / "run", Vocabulary::optional).config();
  CHECK(config.name == "run");
  CHECK(config.context == 9);
  ModelConfig expected;
  expected.vocab = 11, expected.ctx = 9, expected.d = 8, expected.layers = 2, expected.settings<Sdp>().heads = 2;
  expected.block.ff = 12, expected.block.activation = Activation::relu, expected.block.dropout = 0.1;
  CHECK(to_yaml(config.model) == to_yaml(expected));
  CHECK(error_of([&] { RunFolder::open(scratch / "run"); }) ==
        (scratch / "run/tokenizer.json") + ": there is none; a model that was imported without a tokenizer reads and writes no text");
  CHECK(contains(error_of([&] { import_hugging_face(kModels + "gpt2", scratch / "run", {}); }),
      "run: holds a trained model but no checkpoint to go on from"));
}

TEST_CASE("GPT-2: several files under an index, masks, and an output map that is stored twice") {
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
  CHECK(copy.refused() == "FOLDER/model.safetensors.index.json: '../b.safetensors' is no file of this folder");
  copy.folder.write("theirs/model.safetensors.index.json", R"({"weight_map": {"x": "b.safetensors"}})");
  CHECK(copy.refused() == "FOLDER/model.safetensors.index.json: tensor x is not in b.safetensors");
  copy.folder.write("theirs/model.safetensors.index.json", R"({"weight_map": 3})");
  CHECK(copy.refused() == "FOLDER/model.safetensors.index.json: weight_map: expected names with texts");
}

TEST_CASE("GPT-2: what ricci has no equivalent of is named") {
  const auto refused = [](const std::string& from, const std::string& to) {
    const Copy copy("gpt2");
    copy.replace(from, to);
    return copy.refused();
  };
  const std::string file = "FOLDER/config.json: ";
  CHECK(refused("\"gpt2\"", "\"opt\"") == file + "model_type is opt; gpt2, llama, qwen2 and qwen3 can be converted");
  CHECK(refused("GPT2LMHeadModel", "GPT2ForSequenceClassification") ==
        file + "architectures is GPT2ForSequenceClassification; GPT2LMHeadModel and GPT2Model can be converted");
  CHECK(refused("gelu_new", "silu") ==
        file + "activation_function: silu has no equivalent here; there are gelu_new, gelu_pytorch_tanh, gelu, relu");
  CHECK(refused("inverse_layer_idx\": false", "inverse_layer_idx\": true") ==
        file + "scale_attn_by_inverse_layer_idx: true has no equivalent here");
  CHECK(refused("scale_attn_weights\": true", "scale_attn_weights\": false") == file + "scale_attn_weights: false has no equivalent here");
  CHECK(refused("cross_attention\": false", "cross_attention\": true") == file + "add_cross_attention: true has no equivalent here");
  CHECK(refused("1e-05", "-1e-05") == file + "model.norm_eps: -1e-05, expected more than 0");
  CHECK(refused("attn_pdrop\": 0.1", "attn_pdrop\": 0") ==
        file + "embd_pdrop, attn_pdrop and resid_pdrop are 0.1, 0 and 0.1; here they are one rate: choose it with --dropout");
  CHECK(refused("\"n_layer\": 2", "\"n_layer\": \"2\"") == file + "n_layer: expected an integer");
  CHECK(refused("\"n_layer\"", "\"layers\"") == file + "n_layer is missing");
  CHECK(refused("\"n_head\": 2", "\"n_head\": 3") == file + "model.heads: 3 does not divide d = 8");
  CHECK(refused("{", "[{").starts_with(file + "not JSON: fault at byte "));
  const Copy list("gpt2");
  list.folder.write("theirs/config.json", "[]");
  CHECK(list.refused() == file + "expected a JSON object");
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
        "FOLDER: tensor transformer.h.1.attn.c_attn.weight [8 24] is missing");
  CHECK(refused([&](auto& t) { t.emplace_back("transformer.h.2.ln_1.bias", Tensor({8})); }) ==
        "FOLDER: tensor transformer.h.2.ln_1.bias [8] has no place in this GPT-2 model");
  CHECK(refused([&](auto& t) {
    find(t, "wpe.weight")->second = Tensor({8, 8});
  }) == "FOLDER/model.safetensors: tensor transformer.wpe.weight is [8 8], expected [9 8]");
  CHECK(refused([&](auto& t) { find(t, "ln_f.bias")->second = Tensor({8}, Dtype::f64); }) ==
        "FOLDER/model.safetensors: tensor 'transformer.ln_f.bias' is F64; F32, BF16 and F16 can be read as f32");
  CHECK(refused([&](auto& t) {
    t.emplace_back("lm_head.weight", zeros({11, 8}, Dtype::f32, Device::cpu));
  }) == "FOLDER: lm_head.weight is not transformer.wte.weight, though tie_word_embeddings is true");
}

TEST_CASE("GPT-2: the tokenizer of a folder") {
  const Copy copy("gpt2");
  copy.folder.write("theirs/tokenizer.json", R"({"name":"byte"})");
  CHECK(
      copy.refused() == "FOLDER: its tokenizer has 256 tokens, but its config.json has vocab_size: 11; --without-tokenizer leaves it out");
  copy.folder.write("theirs/tokenizer.json", R"({"name":"char","characters":"abcdefghijk"})");
  CHECK(contains(import_hugging_face(copy.theirs(), copy.folder / "run", {.dropout = 0.3}), ", char tokenizer, vocabulary 11"));
  const RunFolder run = RunFolder::open(copy.folder / "run");
  CHECK(run.tokenizer()->encode("cab") == std::vector<int64_t>{2, 0, 1});
  CHECK(run.config().model.block.dropout == 0.3);
}

TEST_CASE("GPT-2: models of ours that it cannot be") {
  const auto refused = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config;
    config.vocab = 5;
    change(config);
    return error_of([&] { gpt2_config_json(config, {}); });
  };
  CHECK(refused([](ModelConfig&) {}) == "no error");
  CHECK(refused([](ModelConfig& c) { c.mixer = kind_of<AveragePool>; }) == "model.mixer: avgpool has no equivalent in GPT-2");
  CHECK(refused([](ModelConfig& c) { c.family = family_of<Classifier>; }) == "model.family: classifier has no equivalent in GPT-2");
  CHECK(refused([](ModelConfig& c) { c.block.norm = Norm::post; }) == "model.norm: post has no equivalent in GPT-2");
  CHECK(refused([](ModelConfig& c) { c.block.norm_kind = NormKind::rms; }) == "model.norm_kind: rms has no equivalent in GPT-2");
  CHECK(refused([](ModelConfig& c) { c.settings<Sdp>().qk_norm = true; }) == "model.qk_norm: true has no equivalent in GPT-2");
  CHECK(refused([](ModelConfig& c) { c.block.gated = true; }) == "model.gated: true has no equivalent in GPT-2");
  CHECK(refused([](ModelConfig& c) { c.block.activation = Activation::relu2; }) == "model.activation: relu2 has no equivalent in GPT-2");
  CHECK(refused([](ModelConfig& c) { c.settings<Sdp>().window = 3; }) == "model.window: 3 has no equivalent in GPT-2");
  CHECK(refused([](ModelConfig& c) { c.settings<Sdp>().window = 64; }) == "no error");
  CHECK(refused([](ModelConfig& c) { c.causal = false; }) == "model.causal: false has no equivalent in GPT-2");
  CHECK(refused([](ModelConfig& c) { c.embedding.positions = PositionKind::none; }) == "model.positions: none has no equivalent in GPT-2");
  CHECK(refused([](ModelConfig& c) { c.embedding.scale_embedding = true; }) == "model.scale_embedding: true has no equivalent in GPT-2");
  CHECK(refused([](ModelConfig& c) { c.output.head_bias = true; }) == "model.head_bias: true has no equivalent in GPT-2");
}

TEST_CASE("GPT-2: biases that a model does without are zeros there") {
  ModelConfig config;
  config.vocab = 5, config.ctx = 6, config.d = 4, config.layers = 1, config.settings<Sdp>().heads = 1;
  config.block.bias = config.block.norm_bias = false;
  Model model(config);
  model.init(1);
  const auto tensors = gpt2_weights(model);
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
