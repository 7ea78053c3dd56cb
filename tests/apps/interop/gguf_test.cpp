// GGUF files, byte for byte: the element types, and GPT-2 with its tokenizer; Llama, Qwen2 and Qwen3 against their Hugging Face folders.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <numbers>

#include "apps/interop/hugging_face.h"
#include "apps/interop/interop.h"
#include "apps/interop/weight_map.h"
#include "apps/run/run_folder.h"
#include "core/files/safetensors.h"
#include "core/json.h"
#include "core/random.h"
#include "data/tokenizers/kinds.h"
#include "tests/apps/interop/gguf_reader.h"
#include "tests/apps/interop/stored_folders.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

double f16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}

std::string imported(const ScratchFolder& scratch, const std::string& name) {
  import_hugging_face(kModels + name, scratch / "run", {});
  return scratch / "run";
}

GgufFile exported(const ScratchFolder& scratch, const std::string& name, GgufNumbers numbers = GgufNumbers::f32) {
  import_hugging_face(kModels + name, scratch / "run", {});
  const std::string path = scratch / "a.gguf";
  const std::string type = name.substr(0, 5);
  CHECK(contains(export_gguf(scratch / "run", path, numbers, false), "GGUF of " + type + ", " + name_of(numbers) + ", no token"));
  return Reader(read_file(path)).file();
}

// The rows of every head in llama.cpp's order: the first column of each pair, the second, the first of the next pair.
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

// A small model of the Llama preset after a change.
Model small_llama(const std::function<void(ModelConfig&)>& change) {
  ModelConfig config;
  config.preset = Preset::llama;
  apply_preset(config);
  config.vocab = 11, config.ctx = 16, config.d = 8, config.layers = 1;
  config.settings<Sdp>().heads = 2;
  change(config);
  check(config);
  return Model(config);
}

// The error of exporting a run of such a model.
std::string refused(const std::function<void(ModelConfig&)>& change) {
  const ScratchFolder scratch;
  Model model = small_llama(change);
  write_imported_run(scratch / "run", model, nullptr, "nowhere");
  const std::string error = error_of([&] { export_gguf(scratch / "run", scratch / "a.gguf", GgufNumbers::f32, false); });
  CHECK(std::filesystem::exists(scratch / "a.gguf") == (error == "no error"));
  return error;
}

}  // namespace

TEST_CASE("GGUF: f16 is the nearest, of two the even one") {
  const auto f16_bits = [](float x) {
    uint16_t bits = 0;
    std::memcpy(&bits, gguf_bytes({&x, 1}, GgufNumbers::f16).data(), sizeof bits);
    return bits;
  };
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {  // all finite values, and the midpoints
    const double here = f16_value(static_cast<uint16_t>(bits)), next = bits == 0x7bff ? 65536 : f16_value(static_cast<uint16_t>(bits + 1));
    const auto middle = static_cast<float>((here + next) / 2);
    REQUIRE(f16_bits(static_cast<float>(here)) == bits);
    REQUIRE(f16_bits(-static_cast<float>(here)) == (bits | 0x8000));
    REQUIRE(f16_bits(middle) == bits + bits % 2);
    REQUIRE(f16_bits(std::nextafter(middle, 0.0f)) == bits);
    REQUIRE(f16_bits(std::nextafter(middle, 1e9f)) == bits + 1);
  }
  CHECK(f16_bits(1e30f) == 0x7c00);
  CHECK(f16_bits(-INFINITY) == 0xfc00);
  CHECK((f16_bits(NAN) & 0x7fff) > 0x7c00);
}

TEST_CASE("GGUF: Q8_0 is a scale in f16, and 32 integers, halves rounded away from zero") {
  std::vector<float> x(64, 0);
  x[0] = -254, x[1] = 1, x[2] = -1, x[3] = 3, x[4] = 0.99f, x[31] = 254;  // the scale is 2, and 1 / 2 rounds to 1
  const std::string bytes = gguf_bytes(x, GgufNumbers::q8_0);
  REQUIRE(bytes.size() == 68);
  const auto at = [&](size_t i) { return static_cast<int>(static_cast<int8_t>(bytes[i])); };
  CHECK(bytes.substr(0, 2) == std::string("\x00\x40", 2));  // 2
  CHECK(std::vector{at(2), at(3), at(4), at(5), at(6), at(7), at(33)} == std::vector{-127, 1, -1, 2, 0, 0, 127});
  CHECK(bytes.substr(34) == std::string(34, '\0'));  // a block of zeros
}

TEST_CASE("GGUF: GPT-2 has its keys, and its tensors in each kind of numbers") {
  const ScratchFolder scratch;
  const std::string run = imported(scratch, "gpt2");
  const SafetensorsFile weights(run + "/model.safetensors");
  for (const auto& [kind, type, file_type] : {std::tuple(GgufNumbers::f32, 0, 0), {GgufNumbers::f16, 1, 1}, {GgufNumbers::bf16, 30, 32},
           {GgufNumbers::q8_0, 1, 7}}) {  // rows of 8 are not a multiple of 32
    const GgufNumbers numbers = kind;
    CAPTURE(name_of(numbers));
    const std::string path = scratch / (std::string(name_of(numbers)) + ".gguf");
    CHECK(contains(export_gguf(run, path, numbers, false), "GGUF of gpt2, " + std::string(name_of(numbers)) + ", no tokenizer"));
    GgufFile file = Reader(read_file(path)).file();
    CHECK(file.values["general.architecture"] == "8:gpt2");
    CHECK(file.values["general.name"] == "8:run");
    CHECK(file.values["general.file_type"] == with_type<uint32_t>(4, static_cast<uint32_t>(file_type)));
    for (const auto& [key, value] : {std::pair("context_length", 9u), {"embedding_length", 8u}, {"block_count", 2u},
             {"feed_forward_length", 32u}, {"attention.head_count", 2u}})
      CHECK(file.values[std::string("gpt2.") + key] == with_type<uint32_t>(4, value));
    CHECK(file.values["gpt2.attention.layer_norm_epsilon"] == with_type<float>(6, 1e-5f));
    CHECK(file.values["tokenizer.ggml.model"] == "8:none");
    CHECK(file.tensors.size() == weights.names().size());
    CHECK(file.tensors["blk.1.ffn_up.weight"].extents == std::vector<int64_t>{8, 32});
    CHECK(file.tensors["blk.1.ffn_up.weight"].type == type);
    CHECK(file.tensors["position_embd.weight"].type == 0);
    for (const auto& [theirs, ours] : {std::pair("blk.1.ffn_up.weight", "blocks.1.fc.weight"), {"position_embd.weight", "pos.weight"},
             {"blk.0.attn_qkv.bias", "blocks.0.mixer.qkv.bias"}, {"output_norm.weight", "ln_f.weight"},
             {"token_embd.weight", "tok.weight"}}) {
      const Tensor value = weights.load_f32(ours);
      const bool is_matrix = theirs == std::string("token_embd.weight") || theirs == std::string("blk.1.ffn_up.weight");
      const GgufNumbers of_matrix = numbers == GgufNumbers::q8_0 ? GgufNumbers::f16 : numbers,
                        stored = is_matrix ? of_matrix : GgufNumbers::f32;
      const std::string expected = gguf_bytes({value.data<float>(), static_cast<size_t>(value.size())}, stored);
      CHECK(file.tensors[theirs].bytes.substr(0, expected.size()) == expected);
    }
    CHECK(error_of([&] { export_gguf(run, path, numbers, false); }) == path + ": already exists");
  }
}

TEST_CASE("GGUF: the tokenizer, with rows that have no piece") {
  const ScratchFolder scratch;
  std::filesystem::copy(kModels + "gpt2", scratch / "theirs");
  scratch.write("theirs/tokenizer.json",
      R"({"added_tokens":[{"id":0,"content":"|","special":true},{"id":5,"content":"+","special":false}],)"
      R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
      R"({"type":"ByteLevel","add_prefix_space":false}]},"model":{"type":"BPE","vocab":{"a":1,"b":2,"ab":3,"Ġ":4},"merges":["a b"]}})");
  import_hugging_face(scratch / "theirs", scratch / "run", {});
  export_gguf(scratch / "run", scratch / "a.gguf", GgufNumbers::f32, false);
  GgufFile file = Reader(read_file(scratch / "a.gguf")).file();
  CHECK(file.values["tokenizer.ggml.model"] == "8:gpt2");
  CHECK(file.values["tokenizer.ggml.pre"] == "8:smollm");
  CHECK(file.values["tokenizer.ggml.tokens"] == "9:|\na\nb\nab\nĠ\n+\n[PAD6]\n[PAD7]\n[PAD8]\n[PAD9]\n[PAD10]\n");
  std::string types = "9:";
  for (const int32_t type : {3, 1, 1, 1, 1, 4, 5, 5, 5, 5, 5}) types.append(reinterpret_cast<const char*>(&type), 4);
  CHECK(file.values["tokenizer.ggml.token_type"] == types);
  CHECK(file.values["tokenizer.ggml.merges"] == "9:a b\n");
  CHECK(file.values["tokenizer.ggml.bos_token_id"] == with_type<uint32_t>(4, 0));  // as in config.json
  CHECK(file.values["tokenizer.ggml.eos_token_id"] == with_type<uint32_t>(4, 0));
  CHECK(file.values["tokenizer.ggml.add_bos_token"] == std::string("7:\0", 3));
}

// If tokenizer.ggml.model is gpt2, llama.cpp begins and ends texts with 11 unless a key names a different id.
TEST_CASE("GGUF: a model without an end of text gets one that no text has") {
  const struct {
    const char *vocabulary, *ends;
    std::vector<uint32_t> found;  // the begin, and the ends
    std::string note;
  } cases[] = {
      {R"("a":0,"b":1)", "null", {2, 2}, ""},                                                         // a row without a token
      {R"("a":0,"b":1,"c":4)", "null", {2, 2}, ""},                                                   // an id without a token
      {R"("a":0,"b":1,"c":2,"d":3,"e":4,"ÿ":5,"g":6,"h":7,"i":8,"j":9,"k":10)", "null", {5, 5}, ""},  // the token of the byte 0xFF
      {R"("a":0,"b":1,"c":2,"d":3,"e":4,"f":5,"g":6,"h":7,"i":8,"j":9,"k":10)", "null", {},
          "the model has no end-of-text token, but llama.cpp needs one; train it with eos=document, or add --without-tokenizer"},
      {R"("a":0,"b":1)", "1", {1, 1}, ""},
      {R"("a":0,"b":1,"c":2,"d":3,"e":4)", "[1, 2, 0, 4, 3]", {1, 1, 2, 0}, "\nGGUF names 3 ends of a text; left out: 'e', 'd'"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.vocabulary);
    const ScratchFolder scratch;
    std::filesystem::copy(kModels + "gpt2", scratch / "theirs");
    scratch.write("theirs/tokenizer.json", std::string(R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)") +
                                               R"("model":{"type":"BPE","vocab":{)" + one.vocabulary + R"(},"merges":[]}})");
    Json config = read_json(scratch / "theirs/config.json");
    config["bos_token_id"] = nullptr;
    config["eos_token_id"] = parse_json(one.ends, one.ends);
    scratch.write("theirs/config.json", to_text(config));
    import_hugging_face(scratch / "theirs", scratch / "run", {});
    std::string lines;
    const std::string error = error_of([&] { lines = export_gguf(scratch / "run", scratch / "a.gguf", GgufNumbers::f32, false); });
    if (one.found.empty()) {
      CHECK(error == one.note);
      CHECK(!std::filesystem::exists(scratch / "a.gguf"));
      continue;
    }
    CHECK(lines.ends_with("from a table in f16" + one.note));
    GgufFile file = Reader(read_file(scratch / "a.gguf")).file();
    const char* const keys[] = {"bos", "eos", "eot", "eom"};
    for (size_t i = 0; i < std::size(keys); ++i)
      CHECK(file.values[format_message("tokenizer.ggml.{}_token_id", {keys[i]})] ==
            (i < one.found.size() ? with_type<uint32_t>(4, one.found[i]) : ""));
    CHECK(file.values["tokenizer.ggml.add_bos_token"] == std::string("7:\0", 3));
  }
}

TEST_CASE("GGUF: a piece after every document ends a text, whatever its name") {
  const ScratchFolder scratch;
  std::filesystem::copy(kModels + "gpt2", scratch / "theirs");
  for (const char* after : {"document", "line"}) {
    scratch.write("theirs/tokenizer.json",
        std::string(R"({"name":"eos","behind":")") + after + R"(","piece":"b","tokenizer":{"pre_tokenizer":)" +
            R"({"type":"ByteLevel","add_prefix_space":false},"model":{"type":"BPE","vocab":{"c":0,"a":1,"b":2},"merges":[]}}})");
    import_hugging_face(scratch / "theirs", scratch / after, {});
  }
  export_gguf(scratch / "document", scratch / "a.gguf", GgufNumbers::f32, false);
  CHECK(Reader(read_file(scratch / "a.gguf")).file().values["tokenizer.ggml.eos_token_id"] == with_type<uint32_t>(4, 2));
  CHECK(error_of([&] { export_gguf(scratch / "line", scratch / "b.gguf", GgufNumbers::f32, false); }) ==
        "a tokenizer with a token after every line has no equivalent in GGUF; --without-tokenizer omits it");
}

TEST_CASE("an exported model says how a text and an answer end, in each format and for each kind of template") {
  // "[E]" ends an answer of the six strings; a byte without a token is an a.
  constexpr const char* kPieces[] = {"a", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>", "<|start_header_id|>",
      "<|end_header_id|>", "<|eot_id|>", "[E]", "<|eom_id|>"};
  const std::vector<std::string> own = {"", "s{content}", "u{content}", "a{content}[E]", "[E]", "a"};
  const std::string chatml = to_jinja(chat_template({"chatml"})), llama3 = to_jinja(chat_template({"llama3"}));
  const struct {
    std::string jinja;               // the imported folder's
    std::vector<std::string> chat;   // the run's
    std::string config, generation;  // eos_token_id of each
    std::vector<uint32_t> ends;
  } cases[] = {
      {chatml, {"chatml"}, "3", "", {3, 2}},             // a base model: <|im_end|> ends an answer
      {chatml, {"chatml"}, "2", "", {2}},                // one token for both
      {chatml, {"chatml"}, "2", "[2, 3]", {3, 2}},       // as Qwen2's
      {chatml, {"chatml"}, "null", "", {3, 2}},          // <|endoftext|> is known by its name
      {llama3, {"llama3"}, "[3, 9, 7]", "", {3, 7, 9}},  // as Llama 3.1's
      {llama3, {"llama3"}, "3", "7", {7}},
      {"[INST]", {}, "8", "[8, 3]", {3, 8}},  // none of ours: as in the folder
      {"", {}, "3", "", {3}},
      {"", own, "3", "", {3, 8}},
      {"", own, "8", "", {8}},
      {"", own, "null", "", {3, 8}},
  };
  std::string added;
  for (int id = 1; id < 10; ++id)
    added += std::string(id > 1 ? "," : "") + R"({"id":)" + std::to_string(id) + R"(,"special":true,"content":")" + kPieces[id] + "\"}";
  for (const auto& one : cases) {
    const ScratchFolder scratch;
    std::filesystem::copy(kModels + "gpt2", scratch / "theirs");
    scratch.write("theirs/tokenizer.json", R"({"added_tokens":[)" + added +
                                               R"(],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
                                               R"("model":{"type":"BPE","unk_token":"a","vocab":{"a":0},"merges":[]}})");
    const std::string config = read_file(kModels + "gpt2/config.json"), ends = R"("eos_token_id": )";
    scratch.write("theirs/config.json", std::string(config).replace(config.find(ends), ends.size() + 1, ends + one.config));
    if (!one.generation.empty()) scratch.write("theirs/generation_config.json", "{" + ends + one.generation + "}");
    if (!one.jinja.empty()) scratch.write("theirs/chat_template.jinja", one.jinja);
    import_hugging_face(scratch / "theirs", scratch / "run", {});
    CAPTURE(one.config);
    CAPTURE(one.generation);
    CAPTURE(one.chat.size());
    {
      const RunFolder run = RunFolder::open(scratch / "run");
      CHECK(run.config().chat == (one.chat == own ? std::vector<std::string>{} : one.chat));
      Model model = run.load_model(Device::cpu);
      if (one.chat == own) write_imported_run(scratch / "own", model, run.tokenizer().get(), "nowhere", {.named = own});
    }
    const std::string run = one.chat == own ? "own" : "run";
    // The run, before and after an export to transformers and an import.
    export_hugging_face(scratch / run, scratch / "back");
    import_hugging_face(scratch / "back", scratch / "again", {});
    export_hugging_face(scratch / "again", scratch / "twice");
    for (const std::string folder : {"back", "twice"}) {
      const auto ids = [&](const char* name) {
        const Json config = read_json(scratch / (folder + "/" + name));
        const Json& ids = member(config, "eos_token_id");
        return ids.is_array() ? ids.get<std::vector<uint32_t>>() : std::vector{ids.get<uint32_t>()};
      };
      CAPTURE(folder);
      CHECK(ids("config.json") == one.ends);
      CHECK(ids("generation_config.json") == one.ends);
      CHECK(member(read_json(scratch / (folder + "/tokenizer_config.json")), "eos_token") == kPieces[one.ends[0]]);
    }
    for (const std::string& name : {run, std::string("again")}) {
      export_gguf(scratch / name, scratch / (name + ".gguf"), GgufNumbers::f32, false);
      GgufFile file = Reader(read_file(scratch / (name + ".gguf"))).file();
      const char* const keys[] = {"eos", "eot", "eom"};
      for (size_t i = 0; i < 3; ++i)
        CHECK(file.values[format_message("tokenizer.ggml.{}_token_id", {keys[i]})] ==
              (i < one.ends.size() ? with_type<uint32_t>(4, one.ends[i]) : ""));
    }
  }
}

TEST_CASE("GGUF: models and tokenizers unknown to llama.cpp are refused, and nothing is written") {
  const ScratchFolder scratch;
  const std::string relu = imported(scratch, "bare_f16");
  CHECK(error_of([&] { export_gguf(relu, scratch / "a.gguf", GgufNumbers::f32, false); }) ==
        "model.activation: relu has no equivalent in GGUF's gpt2");
  std::filesystem::remove_all(scratch / "run");
  std::filesystem::copy(kModels + "gpt2", scratch / "theirs");
  scratch.write("theirs/tokenizer.json", R"({"name":"char","characters":"abcdefghijk"})");
  import_hugging_face(scratch / "theirs", scratch / "run", {});
  CHECK(error_of([&] { export_gguf(scratch / "run", scratch / "a.gguf", GgufNumbers::f32, false); }) ==
        "the char tokenizer has no equivalent in GGUF; --without-tokenizer omits it");
  Json vocab = {{"▁", 256}};
  for (int byte = 0; byte < 256; ++byte) vocab[format_message("<0x{:02X}>", {byte})] = byte;
  scratch.write("wide/tokenizer.json",
      R"({"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},"decoder":{"type":"Sequence","decoders":[)"
      R"({"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"}]},)"
      R"("model":{"type":"BPE","byte_fallback":true,"merges":[],"vocab":)" +
          vocab.dump() + "}}");
  Model wide = small_llama([](ModelConfig& c) { c.vocab = 257; });
  write_imported_run(scratch / "wide", wide, open_tokenizer(scratch / "wide/tokenizer.json").get(), "nowhere");
  CHECK(error_of([&] { export_gguf(scratch / "wide", scratch / "a.gguf", GgufNumbers::f32, false); }) ==
        "a tokenizer with byte_fallback has no equivalent in GGUF; --without-tokenizer omits it");
  CHECK(!std::filesystem::exists(scratch / "a.gguf"));
  export_gguf(scratch / "run", scratch / "a.gguf", GgufNumbers::f32, true);
  CHECK(Reader(read_file(scratch / "a.gguf")).file().values["tokenizer.ggml.model"] == "8:none");
}

TEST_CASE("GGUF: Llama and Qwen have the tensors of Hugging Face, and only llama pairs neighbours instead of halves") {
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
  Model model = small_llama([](ModelConfig& c) {
    c.d = 32;
    c.settings<Sdp>().kv_heads = 1;
    c.block.ff = 40;
  });
  write_imported_run(scratch / "run", model, nullptr, "nowhere");
  export_gguf(scratch / "run", scratch / "a.gguf", GgufNumbers::q8_0, false);
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
  // Factor 4, low 1, high 4, trained on 16 positions: the wavelength 2 pi is between the bounds, and 2 pi sqrt(500) is long.
  const double turns = 16 / (2 * std::numbers::pi), kept = (turns - 1) / 3;
  CHECK(divisors[0] == doctest::Approx(1 / ((1 - kept) / 4 + kept)).epsilon(1e-6));
  CHECK(divisors[1] == 4);

  Model model = small_llama([](ModelConfig& c) {
    c.embedding.rope.scaling = RopeScaling::linear;
    c.embedding.rope.factor = 2.5;
  });
  write_imported_run(scratch / "linear", model, nullptr, "nowhere");
  export_gguf(scratch / "linear", scratch / "linear.gguf", GgufNumbers::f32, false);
  GgufFile linear = Reader(read_file(scratch / "linear.gguf")).file();
  CHECK(linear.values["llama.rope.scaling.type"] == "8:linear");
  CHECK(linear.values["llama.rope.scaling.factor"] == with_type<float>(6, 2.5f));
  CHECK(!linear.tensors.contains("rope_freqs.weight"));
}

TEST_CASE("GGUF: models with rotary positions that llama.cpp does not know") {
  CHECK(refused([](ModelConfig&) {}) == "no error");
  CHECK(refused([](ModelConfig& c) { c.settings<Sdp>().window = 3; }) == "model.window: 3 has no equivalent in llama");
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
  CHECK(to_jinja(chat_template({"chatml"})) ==
        R"j({{ "" }}{% for message in messages %}{% if message["role"] == "system" %})j"
        R"j({{ "<|im_start|>system\n" + message["content"] + "<|im_end|>\n" }}{% elif message["role"] == "user" %})j"
        R"j({{ "<|im_start|>user\n" + message["content"] + "<|im_end|>\n" }}{% elif message["role"] == "assistant" %})j"
        R"j({{ "<|im_start|>assistant\n" + message["content"] + "<|im_end|>\n" }})j"
        R"j({% else %}{{ raise_exception("a role other than system, user and assistant") }}{% endif %}{% endfor %})j"
        R"j({% if add_generation_prompt %}{{ "<|im_start|>assistant\n" }}{% endif %})j");
  const std::string llama3 = to_jinja(chat_template({"llama3"}));
  CHECK(llama3.starts_with(R"j({{ "<|begin_of_text|>" }})j"));
  CHECK(contains(llama3, R"j(user<|end_header_id|>\n\n" + message["content"] | trim + "<|eot_id|>" }})j"));
  CHECK(contains(
      to_jinja(chat_template({"", "'{content}\"\\", "{content}", "{content}E", "E", ""})), R"j({{ "'" + message["content"] + "\"\\" }})j"));
}
