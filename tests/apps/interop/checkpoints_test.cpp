// Other programs' checkpoints: heads, rotary positions and first tokens as in transformers 5.24, and the lines about folders and names that
// cannot be imported.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "apps/interop/hugging_face.h"
#include "apps/interop/interop.h"
#include "apps/run/run_folder.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "tests/apps/interop/stored_folders.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

// Expected values: transformers 5.24 does not tie two different tables, and ties a table that is stored under either name.
TEST_CASE("Hugging Face: a config that says tied, and a file with a head of its own, with the same one, or with only the head") {
  for (const std::string name : {"gpt2", "llama", "qwen2_bf16", "qwen3"}) {
    CAPTURE(name);
    const std::string table = name == "gpt2" ? "transformer.wte.weight" : "model.embed_tokens.weight", head = "lm_head.weight";
    const auto imported = [&](double factor, bool drops_table) {
      const Copy copy(name);
      replace_member(copy, "tie_word_embeddings", "true");
      copy.weights([&](auto& tensors) {
        const auto find = [&](const std::string& tensor) {
          return std::find_if(tensors.begin(), tensors.end(), [&](const auto& each) { return each.first == tensor; });
        };
        const auto own = find(head);
        const Tensor from = own == tensors.end() ? find(table)->second : own->second, scaled(from.shape(), Dtype::f32);
        for (int64_t i = 0; i < from.size(); ++i) scaled.data<float>()[i] = from.data<float>()[i] * static_cast<float>(factor);
        if (own != tensors.end()) tensors.erase(own);
        if (drops_table) tensors.erase(find(table));
        tensors.emplace_back(head, scaled);
      });
      const std::string line = import_hugging_face(copy.theirs(), copy.folder / "run", {});
      const RunFolder run = RunFolder::open(copy.folder / "run", RunFolder::Vocabulary::optional);
      CHECK(run.config().model.output.tie == !contains(line, "lm_head.weight differs from the embedding table: both are kept"));
      Model model = run.load_model(Device::cpu);
      CHECK(contains(line, ": " + with_commas(model.parameter_count()) + " parameters"));
      export_hugging_face(copy.folder / "run", copy.folder / "back");
      CHECK(SafetensorsFile(copy.folder / "back/model.safetensors").contains(head) == !run.config().model.output.tie);
      return std::pair(run.config().model.output.tie, largest_error(model, name, factor));
    };
    CHECK(imported(2, false).first == false);
    CHECK(imported(2, false).second < 1e-5);
    if (name == "qwen3") continue;  // its table differs from the stored head
    CHECK(imported(1, false).first == true);
    CHECK(imported(1, false).second < 1e-5);
    CHECK(imported(1, true).first == true);
    CHECK(imported(1, true).second < 1e-5);
  }
}

// Expected values: LlamaConfig(**keys).rope_parameters of transformers 5.24.
TEST_CASE("Llama: rope_scaling next to rope_parameters") {
  const struct {
    const char *scaling, *parameters, *theta;  // null without the key
    std::string found;
  } cases[] = {
      {R"({"rope_type": "linear", "factor": 4})", R"({"rope_type": "default", "rope_theta": 500})", nullptr, "linear 4 10000"},
      {R"({"rope_type": "linear", "factor": 4, "rope_theta": 300})", R"({"rope_type": "linear", "factor": 2})", "700", "linear 4 300"},
      {R"({"type": "linear", "factor": 4})", R"({"rope_type": "default", "rope_theta": 500})", "700", "linear 4 700"},
      {R"({"rope_type": "default"})", R"({"rope_type": "yarn", "factor": 4})", nullptr, "none 8 10000"},
      {"null", R"({"rope_type": "linear", "factor": 2, "rope_theta": 500})", "700", "linear 2 500"},
      {"{}", R"({"rope_type": "linear", "factor": 2})", "700", "linear 2 700"},
      {nullptr, R"({"rope_type": "default", "rope_theta": 500})", nullptr, "none 8 500"},
      {R"({"rope_type": "linear", "factor": 2})", "null", nullptr, "linear 2 10000"},
      {R"({"rope_type": "linear", "factor": 2})", "{}", "500", "linear 2 500"},
      {"null", "null", "500", "none 8 500"},
      {R"({"rope_type": "yarn", "factor": 4})", R"({"rope_type": "default", "rope_theta": 500})", nullptr,
          "rope_scaling: rope_type: yarn has no equivalent in ricci; expected default, linear or llama3"},
      {R"({"rope_type": "default", "partial_rotary_factor": 0.5})", R"({"rope_type": "default"})", nullptr,
          "partial_rotary_factor: 0.5 has no equivalent in ricci"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.found);
    const Copy copy("llama");
    Json config = read_json(copy.theirs() + "/config.json");
    config.erase("rope_parameters");
    copy.folder.write("theirs/config.json", to_text(config));
    for (const auto& [key, value] :
        {std::pair("rope_scaling", one.scaling), {"rope_parameters", one.parameters}, {"rope_theta", one.theta}})
      if (value) replace_member(copy, key, value);
    std::string found;
    const std::string path = copy.theirs() + "/config.json", error = error_of([&] {
      const RotaryFrequencies rope = read_hf_config(read_json(path), path, -1).embedding.rope;
      found = format_message("{} {} {}", {name_of(rope.scaling), rope.factor, rope.theta});
    });
    CHECK((found.empty() ? error : found) == (found.empty() ? path + ": " : "") + one.found);
  }
}

TEST_CASE("Hugging Face: weights in other files or under other names, each with the way out") {
  const std::string save = "AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW) of transformers writes it";
  for (const auto& [name, way] : {std::pair("pytorch_model.bin", save), {"pytorch_model.bin.index.json", save},
           {"adapter_config.json", "a PEFT adapter is not a full model: merge_and_unload() and save_pretrained(NEW) write one"},
           {"consolidated.00.pth", "this is Meta's own form; the hub also has the transformers form"}}) {
    const Copy copy("gpt2");
    copy.folder.write(std::string("theirs/") + name, "");
    import_hugging_face(copy.theirs(), copy.folder / "both", {});
    std::filesystem::remove(copy.theirs() + "/model.safetensors");
    CHECK(copy.refused() == std::string("FOLDER: has ") + name + ", but no model.safetensors; " + way);
    std::filesystem::remove(copy.theirs() + "/config.json");
    CHECK(copy.refused().starts_with(std::string("FOLDER: has ") + name));
  }
  for (const auto& [part, way] :
      {std::pair("_orig_mod.", "torch.compile; save model._orig_mod"), {"module.", "DistributedDataParallel; save model.module"},
          {"base_model.model.", "PEFT; save model.merge_and_unload()"}, {"module._orig_mod.", "torch.compile; save model._orig_mod"}}) {
    const Copy copy("llama");
    const std::string prefix = part;
    copy.weights([&](auto& tensors) {
      for (auto& each : tensors) each.first = prefix + each.first;
    });
    const std::string refused = copy.refused();
    CHECK(contains(refused, "FOLDER: the name of tensor " + prefix + "model.embed_tokens.weight contains the "));
    CHECK(refused.ends_with(std::string(" of ") + way));
  }
  const Copy compiled_block("gpt2");
  compiled_block.weights([](auto& tensors) { tensors[1].first = "transformer.h.0._orig_mod.ln_1.weight"; });
  CHECK(contains(
      compiled_block.refused(), "the name of tensor transformer.h.0._orig_mod.ln_1.weight contains the _orig_mod. of torch.compile"));
  const Copy quantized("gpt2");
  replace_member(quantized, "quantization_config", R"({"load_in_8bit": true})");
  CHECK(quantized.refused() == "FOLDER/config.json: quantization_config: quantized weights have no equivalent in ricci");
  CHECK(error_of([] { import_hugging_face("meta-llama/Llama-3.2-1B", "runs/bad", {}); }) ==
        "meta-llama/Llama-3.2-1B: no such folder; to get a model from the hub, run hf download meta-llama/Llama-3.2-1B --local-dir "
        "FOLDER");
}

TEST_CASE("Hugging Face: the tokenizer of a folder in a form that only transformers reads") {
  const Copy copy("gpt2");
  copy.folder.write("theirs/tokenizer.model", "\n\x0e");
  CHECK(copy.refused() ==
        "FOLDER/tokenizer.model: is a SentencePiece vocabulary; AutoTokenizer.from_pretrained(FOLDER).save_pretrained(NEW) of "
        "transformers writes a tokenizer.json; add --without-tokenizer to omit the tokenizer");
  CHECK_NOTHROW(import_hugging_face(copy.theirs(), copy.folder / "run", {}, true));
}

// Expected values: AutoTokenizer.from_pretrained(FOLDER)(text) of transformers 5.24. It ignores add_bos_token if a tokenizer.json exists.
TEST_CASE("Hugging Face: the template in tokenizer.json decides about the token that starts a text") {
  const std::string a = R"({"Sequence":{"id":"A","type_id":0}})", b = R"({"SpecialToken":{"id":"|","type_id":0}})";
  for (const auto& expected : {std::pair(a, -1), {b + "," + a, 0}, {b + "," + a + "," + b, 0}, {a + "," + b, -1}, {std::string(), -1}})
    for (const char* const keys : {"", R"(,"add_bos_token":true)", R"(,"add_bos_token":false)", R"(,"add_eos_token":true)"}) {
      const std::string& single = expected.first;
      CAPTURE(single);
      CAPTURE(keys);
      const Copy copy("gpt2");
      const std::string processor = single.empty() ? "null"
                                                   : R"({"type":"TemplateProcessing","single":[)" + single +
                                                         R"(],"special_tokens":{"|":{"id":"|","ids":[0],"tokens":["|"]}}})";
      copy.folder.write("theirs/tokenizer.json", R"({"added_tokens":[{"id":0,"content":"|","special":true}],"post_processor":)" +
                                                     processor +
                                                     R"(,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
                                                     R"("model":{"type":"BPE","vocab":{"a":1,"b":2},"merges":[]}})");
      copy.folder.write("theirs/tokenizer_config.json", std::string(R"({"bos_token":"|","eos_token":"|")") + keys + "}");
      import_hugging_face(copy.theirs(), copy.folder / "run", {});
      CHECK(RunFolder::open(copy.folder / "run").tokenizer()->marks().first == expected.second);
    }
}
