// Ids against vectors that other programs made: with the small vocabularies beside this file, and with GPT-2's and BERT's.
#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <map>

#include "core/json/value.h"
#include "data/shards/pieces.h"
#include "data/text/utf8.h"
#include "data/tokenizers/kinds.h"
#include "tests/data/files.h"
#include "tests/skip.h"

using namespace ricci;
using namespace test_data;

namespace {

using Ids = std::vector<int64_t>;

std::vector<JsonValue> json_lines(const std::string& path) {
  std::vector<JsonValue> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(parse_json(line, "vectors"));
  return lines;
}

Ids ids_of(const JsonValue& list) {
  Ids ids;
  for (const JsonValue& id : list.items()) ids.push_back(id.integer());
  return ids;
}

std::string decoded_as_stream(const Tokenizer& tokenizer, const Ids& ids) {
  DecodeState state;
  std::string text;
  for (const int64_t id : ids) {
    const std::string next = tokenizer.decode_next(id, state);
    CHECK(complete_utf8_prefix(next) == next.size());
    text += next;
  }
  return text + tokenizer.decode_end(state);
}

// The number of lines; a line that differs fails.
size_t compare(const Tokenizer& tokenizer, const std::vector<JsonValue>& lines, const char* key) {
  for (const JsonValue& line : lines) {
    INFO("text: ", line["text"].text());
    CHECK(tokenizer.encode(line["text"].text()) == ids_of(line[key]));
  }
  return lines.size();
}

std::string sha256_of(const std::string& path) {
  std::FILE* const out = ::popen(("sha256sum < '" + path + "'").c_str(), "r");
  char digits[65] = {};
  REQUIRE(out);
  CHECK(std::fread(digits, 1, 64, out) == 64);
  ::pclose(out);
  return digits;
}

}  // namespace

TEST_CASE("vectors: the small vocabularies give the ids and texts of Hugging Face's tokenizers") {
  const std::string folder = std::string(RICCI_TESTS_FOLDER) + "/data/tokenizers/";
  std::map<std::string, std::shared_ptr<const Tokenizer>> tokenizers;
  const std::vector<JsonValue> lines = json_lines(folder + "vectors.jsonl");
  for (const JsonValue& line : lines) {
    const std::string& name = line["tokenizer"].text();
    auto& tokenizer = tokenizers[name];
    if (!tokenizer) tokenizer = open_tokenizer(folder + "small/" + name);
    const Ids ids = ids_of(line["ids"]);
    INFO(name, ", text: ", line["text"].text());
    CHECK(tokenizer->encode(line["text"].text()) == ids);
    CHECK(replace_invalid_utf8(tokenizer->decode(ids)) == line["decoded"].text());
    CHECK(decoded_as_stream(*tokenizer, ids) == tokenizer->decode(ids));
  }
  CHECK(lines.size() == 750);
  CHECK(tokenizers.size() == 6);
}

TEST_CASE("vectors: GPT-2 and BERT" * doctest::test_suite("needs tokenizers")) {
  const std::string folder = corpus("tokenizers");
  if (folder.empty()) return test::skip("needs tokenizers/ under $RICCI_DATA");
  const auto gpt2 = open_tokenizer(folder + "/gpt2/vocab.bpe");
  CHECK(gpt2->vocab_size() == 50257);
  CHECK(open_tokenizer(folder + "/gpt2/encoder.json")->hash() == gpt2->hash());
  const std::vector<JsonValue> lines = json_lines(folder + "/vectors/gpt2-vectors.jsonl");
  CHECK(compare(*gpt2, lines, "ids") == 333);
  for (const JsonValue& line : lines) CHECK(gpt2->decode(ids_of(line["ids"])) == line["text"].text());
  const std::vector<JsonValue> bert = json_lines(folder + "/vectors/bert-vectors.jsonl");
  CHECK(compare(*open_tokenizer(folder + "/bert/bert-base-cased-vocab.txt"), bert, "cased_ids") == 272);
  CHECK(compare(*open_tokenizer(folder + "/bert/bert-base-uncased-vocab.txt", {.lowercase = true}), bert, "uncased_ids") == 272);
}

TEST_CASE("vectors: whole corpora in GPT-2's tokens" * doctest::test_suite("needs tokenizers")) {
  const std::string folder = corpus("tokenizers");
  if (folder.empty()) return test::skip("needs tokenizers/ under $RICCI_DATA");
  const auto gpt2 = open_tokenizer(folder + "/gpt2/vocab.bpe");
  const JsonValue totals = parse_json(read_file(folder + "/vectors/gpt2-corpus-totals.json"), "totals");
  const ScratchFolder scratch;
  int found = 0;
  for (size_t i = 0; i < totals.keys().size(); ++i) {
    const std::string& name = totals.keys()[i];
    const JsonValue& total = totals.items()[i];
    const std::string plain = corpus(name), path = plain.empty() ? corpus(name + ".gz") : plain;
    if (path.empty()) continue;  // a part of a file, which nanoGPT's split makes
    ++found;
    std::string packed;
    for_each_ids(TextSource(path), *gpt2, [&](std::span<const int64_t> ids, int64_t) {
      for (const int64_t id : ids) (packed += static_cast<char>(id & 0xff)) += static_cast<char>(id >> 8);
    });
    INFO(name);
    CHECK(static_cast<int64_t>(packed.size()) == 2 * total["tokens"].integer());
    CHECK(sha256_of(scratch.write("ids", packed)) == total["sha256_u16le"].text());
  }
  CHECK(found == 5);
}
