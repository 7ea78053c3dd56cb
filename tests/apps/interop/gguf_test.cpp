// GGUF files, byte for byte: the numbers, and GPT-2 with its tokenizer. The other models are in gguf_models_test.cpp.
#include "apps/interop/gguf.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>

#include "apps/interop/interop.h"
#include "apps/run/folder/run_folder.h"
#include "core/files/safetensors.h"
#include "core/random.h"
#include "tests/apps/interop/gguf_reader.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

const std::string kTests = RICCI_TESTS_FOLDER;

double f16_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}

std::string imported(const ScratchFolder& scratch, const std::string& name) {
  import_hugging_face(kTests + "/interop/models/" + name, scratch / "run", {});
  return scratch / "run";
}

}  // namespace

TEST_CASE("GGUF: f16 is the nearest, of two the even one") {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {  // all that are finite, and the middles between them
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
           {GgufNumbers::q8_0, 1, 7}}) {  // rows of 8 are no multiple of 32
    const GgufNumbers numbers = kind;
    CAPTURE(name_of(numbers));
    const std::string path = scratch / (std::string(name_of(numbers)) + ".gguf");
    CHECK(contains(export_gguf(run, "last", path, numbers, false), "GGUF of gpt2, " + std::string(name_of(numbers)) + ", no tokenizer"));
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
    CHECK(error_of([&] { export_gguf(run, "last", path, numbers, false); }) == path + ": is there already");
  }
}

TEST_CASE("GGUF: the tokenizer, with rows that have no piece") {
  const ScratchFolder scratch;
  std::filesystem::copy(kTests + "/interop/models/gpt2", scratch / "theirs");
  scratch.write("theirs/tokenizer.json",
      R"({"added_tokens":[{"id":0,"content":"|","special":true},{"id":5,"content":"+","special":false}],)"
      R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
      R"({"type":"ByteLevel","add_prefix_space":false}]},"model":{"type":"BPE","vocab":{"a":1,"b":2,"ab":3,"Ġ":4},"merges":["a b"]}})");
  import_hugging_face(scratch / "theirs", scratch / "run", {});
  export_gguf(scratch / "run", "last", scratch / "a.gguf", GgufNumbers::f32, false);
  GgufFile file = Reader(read_file(scratch / "a.gguf")).file();
  CHECK(file.values["tokenizer.ggml.model"] == "8:gpt2");
  CHECK(file.values["tokenizer.ggml.pre"] == "8:smollm");
  CHECK(file.values["tokenizer.ggml.tokens"] == "9:|\na\nb\nab\nĠ\n+\n[PAD6]\n[PAD7]\n[PAD8]\n[PAD9]\n[PAD10]\n");
  std::string types = "9:";
  for (const int32_t type : {3, 1, 1, 1, 1, 4, 5, 5, 5, 5, 5}) types.append(reinterpret_cast<const char*>(&type), 4);
  CHECK(file.values["tokenizer.ggml.token_type"] == types);
  CHECK(file.values["tokenizer.ggml.merges"] == "9:a b\n");
  CHECK(file.values["tokenizer.ggml.bos_token_id"] == with_type<uint32_t>(4, 0));  // as config.json says
  CHECK(file.values["tokenizer.ggml.eos_token_id"] == with_type<uint32_t>(4, 0));
  CHECK(file.values["tokenizer.ggml.add_bos_token"] == std::string("7:\0", 3));
}

TEST_CASE("GGUF: what llama.cpp does not know is refused, and nothing is written") {
  const ScratchFolder scratch;
  const std::string relu = imported(scratch, "bare_f16");
  CHECK(error_of([&] { export_gguf(relu, "last", scratch / "a.gguf", GgufNumbers::f32, false); }) ==
        "model.activation: relu has no equivalent in GGUF's gpt2");
  std::filesystem::remove_all(scratch / "run");
  std::filesystem::copy(kTests + "/interop/models/gpt2", scratch / "theirs");
  scratch.write("theirs/tokenizer.json", R"({"name":"char","characters":"abcdefghijk"})");
  import_hugging_face(scratch / "theirs", scratch / "run", {});
  CHECK(error_of([&] { export_gguf(scratch / "run", "last", scratch / "a.gguf", GgufNumbers::f32, false); }) ==
        "the char tokenizer has no equivalent in GGUF; --without-tokenizer leaves it out");
  CHECK(!std::filesystem::exists(scratch / "a.gguf"));
  export_gguf(scratch / "run", "last", scratch / "a.gguf", GgufNumbers::f32, true);
  CHECK(Reader(read_file(scratch / "a.gguf")).file().values["tokenizer.ggml.model"] == "8:none");
}
