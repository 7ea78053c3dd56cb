// Numbers in a config.json that no model can have: each ends in one line, soon and in little memory, and leaves no run.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/apps/interop/stored_folders.h"
#include "tests/bounded.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

struct Case {
  const char *model, *key, *value, *error;  // the error begins with this, after the path of the file
};

constexpr const char* kHuge = "9223372036854775807";
const std::vector<Case> kCases = {
    {"llama", "num_attention_heads", "0", "model.heads: 0, expected 1 or more"},
    {"llama", "num_key_value_heads", "0", "model.kv_heads: 0, expected 1 or more"},
    {"llama", "head_dim", "0", "model.head_width: 0, expected 1 or more"},
    {"llama", "num_attention_heads", kHuge, "model.heads: "},
    {"llama", "hidden_size", kHuge, "model.d: "},
    {"llama", "intermediate_size", kHuge, "model.ff: "},
    {"llama", "intermediate_size", "-1", "model.ff: -1, expected 1 or more"},
    {"llama", "vocab_size", kHuge, "model.vocab: "},
    {"llama", "vocab_size", "1e30", "vocab_size: expected an integer"},
    {"llama", "max_position_embeddings", kHuge, "model.ctx: "},
    {"llama", "num_hidden_layers", kHuge, "model.layers: "},
    {"llama", "rms_norm_eps", "-1", "model.norm_eps: -1, expected "},
    {"llama", "rms_norm_eps", "1e999", ""},
    {"llama", "rope_theta", "0", "model.rope_theta: 0, expected "},
    {"llama", "rope_theta", "NaN", ""},
    {"llama", "factor", "0", "model.rope_factor: 0, expected "},
    {"llama", "low_freq_factor", "9", "model.rope_low: 9, expected less than rope_high = 4"},
    {"llama", "original_max_position_embeddings", "0", "model.rope_trained_ctx: 0, expected "},
    {"gpt2", "n_embd", kHuge, "model.d: "},
    {"gpt2", "layer_norm_epsilon", "1e999", ""},
};

// Gives the number after the key, which the file has, another value.
void replace_number(const Copy& copy, const std::string& key, const std::string& value) {
  const std::string text = read_file(copy.theirs() + "/config.json"), quoted = "\"" + key + "\": ";
  const size_t at = text.find(quoted);
  REQUIRE(at != text.npos);
  const size_t begin = at + quoted.size();
  copy.replace(text.substr(at, text.find_first_of(",\n}", begin) - at), quoted + value);
}

}  // namespace

TEST_CASE("a config.json with numbers that cannot be ends in one line, soon, and leaves no run") {
  for (const Case& one : kCases) {
    CAPTURE(one.key);
    CAPTURE(one.value);
    const auto& [model, key, value, error] = one;
    const Copy copy(model);
    replace_number(copy, key, value);
    const std::string found = test::bounded_error([&] { import_hugging_face(copy.theirs(), copy.folder / "run", {}); });
    CHECK(found.starts_with(copy.theirs() + "/config.json: " + error));
    CHECK(found.find('\n') == found.npos);
    CHECK(found.size() < 400);
    CHECK(!std::filesystem::exists(copy.folder / "run"));
  }
}
