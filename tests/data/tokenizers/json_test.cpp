// tokenizer.json: the written text is read again, and an unsupported component is named; tokenizers from their published files.
#include "core/json.h"

#include <doctest/doctest.h>

#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/words.h"
#include "tests/bounded.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

const std::string kByteLevel = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})";

// A file with one of its components replaced.
std::string file(const std::string& model, const std::string& pre_tokenizer, const std::string& others = "") {
  return R"({"version":"1.0","added_tokens":[],"pre_tokenizer":)" + pre_tokenizer + R"(,"model":)" + model +
         (others.empty() ? "" : "," + others) + "}";
}

std::string bpe(const std::string& more = "") {
  return R"({"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"])" + (more.empty() ? "" : "," + more) + "}";
}
const std::string kWordPiece = R"({"type":"WordPiece","vocab":{"[UNK]":0,"a":1}})";

std::string fault(const std::string& json) {
  return test::bounded_error([&] { tokenizer_from_json(json); });
}

using Ids = std::vector<int64_t>;

std::string vocabulary_json() {
  Json json;
  for (int byte = 0; byte < 256; ++byte) {
    const char letter = static_cast<char>(byte);
    json[bytes_to_letters({&letter, 1})] = byte;
  }
  json["ab"] = 256;
  json["Ġab"] = 257;
  return json.dump();
}

}  // namespace

TEST_CASE("tokenizer.json: the small vocabularies are written as they are read") {
  for (const char* name : {"gpt2", "llama3", "smollm", "bert-cased", "bert-uncased", "word"}) {
    const auto tokenizer = open_tokenizer(std::string(RICCI_TESTS_FOLDER) + "/data/tokenizers/small/" + name + ".json");
    const auto again = tokenizer_from_json(tokenizer->to_json());
    CHECK(again->to_json() == tokenizer->to_json());
    CHECK(again->hash() == tokenizer->hash());
    CHECK(again->vocab_size() == tokenizer->vocab_size());
    const std::string text = "Don't tensor 12345\n\n<|endoftext|> [MASK] Ünïcödé.";
    CHECK(again->encode(text) == tokenizer->encode(text));
  }
}

TEST_CASE("tokenizer.json: hashes stay, because shards and checkpoints contain them") {
  const struct {
    const char* name;
    uint64_t plain, line, document;
  } cases[] = {
      {"gpt2", 15637114504339953821u, 5118487464192089999u, 13570260720706782242u},
      {"llama3", 1254384422811218095u, 8316313929340961803u, 6891461393045954868u},
      {"smollm", 15615987911571672849u, 16518990370120118007u, 12192679806530167862u},
      {"bert-cased", 8612858279426318670u, 12009545705963891666u, 3026277112397353937u},
      {"bert-uncased", 14490232220391507004u, 15264712062787119120u, 1664199534974483931u},
      {"word", 5823805007074697276u, 5657169866441079304u, 3531396544316781097u},
  };
  for (const auto& [name, plain, line, document] : cases) {
    const std::string path = std::string(RICCI_TESTS_FOLDER) + "/data/tokenizers/small/" + name + ".json";
    const auto tokenizer = open_tokenizer(path);
    INFO(path);
    CHECK(tokenizer->hash() == plain);
    CHECK(with_eos(tokenizer, Eos::line)->hash() == line);
    CHECK(with_eos(tokenizer, Eos::document)->hash() == document);
  }
}

TEST_CASE("tokenizer.json: forms of the same file") {
  const auto plain = tokenizer_from_json(file(bpe(), kByteLevel));
  const auto pairs = tokenizer_from_json(file(R"({"type":"BPE","vocab":{"ab":2,"b":1,"a":0},"merges":[["a","b"]]})",
      R"({"type":"Sequence","pretokenizers":[)" + kByteLevel + "]}"));
  CHECK(plain->hash() == pairs->hash());
  CHECK(plain->encode("abba") == std::vector<int64_t>{2, 1, 0});
  for (const auto& [normalizer, ids] : {std::pair("null", Ids{2, 3, 4}), {R"({"type":"Sequence","normalizers":[]})", Ids{2, 3, 4}},
           {R"({"type":"NFC"})", Ids{0, 1}}, {R"({"type":"Sequence","normalizers":[{"type":"NFC"}]})", Ids{0, 1}}}) {
    const std::string pieces = R"({"type":"BPE","vocab":{"Ã":0,"©":1,"e":2,"Ì":3,"ģ":4},"merges":[]})";
    CHECK(tokenizer_from_json(file(pieces, kByteLevel, std::string(R"("normalizer":)") + normalizer))->encode("e\u0301") == ids);
  }
  const auto kept = tokenizer_from_json(file(bpe(), kByteLevel, R"("post_processor":{"type":"ByteLevel","trim_offsets":false})"));
  CHECK(contains(kept->to_json(), R"("post_processor":{"type":"ByteLevel","trim_offsets":false})"));
  const auto added = with_additions(*plain, {.pieces = {"<eos>"}});
  CHECK(added->encode("ab<eos>") == std::vector<int64_t>{2, 3});
}

TEST_CASE("tokenizer.json: a model does not know a token that was only added, also when it is read again") {
  const std::string added = R"([{"id":3,"content":"ab","single_word":true,"normalized":false}])";
  const auto with = [&](const std::string& vocabulary) {
    return tokenizer_from_json(R"({"added_tokens":)" + added + R"(,"pre_tokenizer":)" + kByteLevel +
                               R"(,"model":{"type":"BPE","ignore_merges":true,"merges":[],"vocab":)" + vocabulary + "}}");
  };
  const auto outside = with(R"({"a":0,"b":1,"1":2})"), inside = with(R"({"a":0,"b":1,"1":2,"ab":3})");
  for (const auto& each : {outside, tokenizer_from_json(outside->to_json()), with_additions(*outside, {.marks = {.ends = {3}}})}) {
    CHECK(each->encode("ab1") == Ids{0, 1, 2});
    CHECK(each->encode("ab") == Ids{3});
    CHECK(each->decode(Ids{3}) == "ab");
  }
  CHECK(inside->encode("ab1") == Ids{3, 2});
  CHECK(outside->hash() != inside->hash());
  CHECK(with_eos(outside, Eos::document, "ab")->hash() != outside->hash());
}

TEST_CASE("tokenizer.json: a template gives the first token, added tokens say which mark a text; both are written again") {
  const std::string special = R"("special_tokens":{"b":{"id":"b","ids":[1],"tokens":["b"]}})", a = R"({"Sequence":{"id":"A","type_id":0}})",
                    b = R"({"SpecialToken":{"id":"b","type_id":0}})";
  const auto with = [&](const std::string& single) {
    return tokenizer_from_json(file(
        bpe(), kByteLevel, R"("post_processor":{"type":"TemplateProcessing","single":[)" + single + R"(],"pair":[],)" + special + "}"));
  };
  const auto tokenizer = with(b + "," + a);
  CHECK(tokenizer->marks().first == 1);
  CHECK(tokenizer->encode("ab") == std::vector<int64_t>{2});
  CHECK(tokenizer->encode_start("ab") == std::vector<int64_t>{1, 2});
  CHECK(tokenizer->encode_start("") == std::vector<int64_t>{1});
  CHECK(with(a)->marks().first == -1);
  CHECK(with(b + "," + a + "," + b)->marks().first == 1);
  CHECK(with(a + "," + b)->marks().first == -1);
  CHECK(with(b + "," + b + "," + a)->marks().first == -1);
  CHECK(tokenizer_from_json(tokenizer->to_json())->marks().first == 1);

  const auto plain = tokenizer_from_json(file(bpe(), kByteLevel));
  CHECK(with_additions(*plain, {.marks = {}})->to_json() == plain->to_json());
  const auto marked = tokenizer_from_json(with_additions(*plain, {.marks = {.first = 0, .begin = 1, .ends = {2, 1}}})->to_json());
  CHECK(marked->marks().first == 0);
  CHECK(marked->marks().begin == 1);
  CHECK(marked->marks().ends == std::vector<int64_t>{1, 2});
  CHECK(marked->encode_start("a") == std::vector<int64_t>{0, 0});
  CHECK(test::bounded_error([&] { with_additions(*plain, {.marks = {.ends = {7}}}); }) ==
        "bpe tokenizer: the id 7, which marks the start or end of texts, has no token");
  const std::string missing = R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"c"}},{"Sequence":{"id":"A"}}]})";
  CHECK(fault(file(bpe(), kByteLevel, R"("post_processor":)" + missing)) ==
        "bpe tokenizer: the token 'c' at the start of every text is not in the vocabulary");
  const std::string digits = R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":false},)" + kByteLevel + "]}";
  CHECK(contains(fault(file(bpe(), digits)), "the pre_tokenizer 'Digits without individual_digits' is not supported"));
}

// ---- Tokenizers like Llama 2's. Expected values: the package tokenizers 0.23.3 (tests/interop/tokenizer_ids.py compares many more).
namespace {

const std::string kReplace = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})",
                  kLlama2 = R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)" + kReplace + "]}";

std::string metaspace(const std::string& scheme) {
  return R"({"type":"Metaspace","replacement":"▁","prepend_scheme":")" + scheme + R"(","split":false})";
}

// The tokens: <unk> 0, <s> 1, the bytes 2 to 257, then these.
std::string underscored(const std::string& normalizer, const std::string& pre_tokenizer, bool strips = true,
    std::vector<std::string> merges = {"▁ ▁", "a b", "▁ ab"}, const std::string& more = "") {
  Json vocab = {{"<unk>", 0}, {"<s>", 1}};
  for (int byte = 0; byte < 256; ++byte) vocab[format_message("<0x{:02X}>", {byte})] = 2 + byte;
  int64_t next = 258;
  for (const char* piece : {"▁", "a", "b", "ab", "▁▁", "▁ab", "b▁"}) vocab[piece] = next++;
  return R"({"added_tokens":[{"id":0,"content":"<unk>","special":true,"normalized":false},{"id":1,"content":"<s>","special":true,)"
         R"("normalized":false}],"normalizer":)" +
         normalizer + R"(,"pre_tokenizer":)" + pre_tokenizer +
         R"(,"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},)"
         R"({"type":"Fuse"})" +
         std::string(strips ? R"(,{"type":"Strip","content":" ","start":1,"stop":0})" : "") +
         R"(]},"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true)" + more + R"(,"vocab":)" + vocab.dump() +
         R"(,"merges":)" + Json(merges).dump() + "}}";
}

}  // namespace

TEST_CASE("tokenizer.json: Llama 2's kind, with blanks as underscores and characters without a piece in bytes") {
  constexpr int64_t s = 1, byte = 2, u = 258, a = 259, b = 260, ab = 261, uu = 262, uab = 263;
  const struct {
    std::string normalizer, pre_tokenizer;
    std::vector<std::pair<std::string, Ids>> texts;
  } forms[] = {
      {kLlama2, "null",
          {{"", {}}, {"ab", {uab}}, {" ab", {uu, ab}}, {"  ab", {uu, uab}}, {"ab ab", {uab, uab}}, {"a  b", {u, a, uu, b}},
              {"<s>ab", {s, uab}}, {"ab<s> ab", {uab, s, uu, ab}}, {"\n", {u, byte + 10}}, {"é", {u, byte + 0xc3, byte + 0xa9}},
              {"▁ab", {uu, ab}}}},
      {kReplace, "null", {{"ab", {ab}}, {" ab", {uab}}, {"ab<s>ab", {ab, s, ab}}, {"<s> ab", {s, uab}}}},
      {"null", metaspace("first"), {{"ab", {uab}}, {" ab", {uab}}, {"  ab", {uu, ab}}, {"ab<s>ab", {uab, s, ab}}, {"<s>ab", {s, ab}}}},
      {"null", metaspace("always"), {{"ab", {uab}}, {" ab", {uab}}, {"ab<s>ab", {uab, s, uab}}, {"<s> ab", {s, uab}}, {"▁ab", {uab}}}},
      {"null", metaspace("never"), {{"ab", {ab}}, {"ab<s>ab", {ab, s, ab}}, {" ab", {uab}}}},
  };
  for (const auto& form : forms) {
    const auto tokenizer = tokenizer_from_json(underscored(form.normalizer, form.pre_tokenizer));
    const auto again = tokenizer_from_json(tokenizer->to_json());
    CHECK(again->to_json() == tokenizer->to_json());
    for (const auto& expected : form.texts) {
      CAPTURE(expected.first);
      CHECK(tokenizer->encode(expected.first) == expected.second);
      CHECK(again->encode(expected.first) == expected.second);
    }
    // Each cut that complete_prefix allows leaves the ids unchanged.
    const std::string text = "ab  ab<s> ab<s>ab <s>  b▁a \n é ab ▁ ab<unk> a ";
    const Ids whole = tokenizer->encode(text);
    int cuts = 0;
    for (size_t length = 1; length < text.size(); ++length) {
      const size_t cut = tokenizer->complete_prefix(text.substr(0, length));
      if (cut == 0) continue;
      ++cuts;
      Ids parts;
      tokenizer->append_ids(text.substr(0, cut), 0, parts);
      tokenizer->append_ids(text.substr(cut), 0, parts, false);
      CAPTURE(cut);
      CHECK(parts == whole);
    }
    CHECK(cuts > 30);
    // The same ids from many threads, in time linear in the length.
    std::string many, word(200000, 'a');
    for (int i = 0; i < 10000; ++i) many += text;
    Ids expected;
    tokenizer->append_ids(many, 0, expected);
    CHECK(tokenizer->encode(many) == expected);
    CHECK(tokenizer->encode(word).size() > 199999);
  }
  const auto llama2 = tokenizer_from_json(underscored(kLlama2, "null")), gemma = tokenizer_from_json(underscored(kReplace, "null", false));
  CHECK(llama2->decode(Ids{uab, uab}) == "ab ab");
  CHECK(llama2->decode(Ids{u, uab}) == " ab");
  CHECK(llama2->decode(Ids{s, uab}) == "<s> ab");
  CHECK(gemma->decode(Ids{uab, uab}) == " ab ab");
  CHECK(llama2->decode(Ids{uab, byte + 0xc3, byte + 0xa9}) == "abé");
  DecodeState state = llama2->state_after(Ids{ab});
  CHECK(llama2->decode_next(byte + 0xc3, state).empty());
  CHECK(llama2->decode_next(byte + 0xa9, state) == "é");
  CHECK(llama2->decode_next(uab, state) == " ab");
  CHECK(llama2->decode(llama2->encode("\xff a")) == "\xff a");  // not UTF-8
}

TEST_CASE("tokenizer.json: forms of Llama 2's kind that are not supported") {
  const std::string with_it = "tokenizer.json: the model 'BPE with byte_fallback' is not supported";
  CHECK(fault(underscored("null", "null")).starts_with(with_it));
  CHECK(fault(underscored(kLlama2, metaspace("first"))).starts_with(with_it));
  CHECK(fault(underscored("null", R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true})")).starts_with(with_it));
  CHECK(fault(underscored(R"({"type":"NFKC"})", "null")).starts_with(with_it));
  CHECK(fault(underscored(kLlama2, "null", true, {}, R"(,"ignore_merges":true)"))
            .starts_with("tokenizer.json: the model 'BPE with byte_fallback and ignore_merges' is not supported"));
  CHECK(fault(underscored(kLlama2, "null", true, {"b ▁"})) ==
        "bpe tokenizer: the merge of 'b' and '▁' crosses a blank, so texts cannot be divided");
  const auto without = [](const std::string& piece) {
    Json root = parse_json(underscored(kLlama2, "null", true, {}), "test");
    root["model"]["vocab"].erase(piece);
    return fault(root.dump());
  };
  CHECK(without("<0x41>") == "bpe tokenizer: byte_fallback needs the token <0x41>");
  CHECK(without("▁") == "bpe tokenizer: byte_fallback needs the token ▁");
  std::string other_decoder = underscored(kLlama2, "null");
  other_decoder.replace(other_decoder.find("Fuse"), 4, "Burn");
  CHECK(fault(other_decoder)
            .starts_with("tokenizer.json: the decoder 'Sequence' is not supported; supported with byte_fallback are Replace"));
}

TEST_CASE("tokenizer.json: an unsupported component is named") {
  CHECK(fault(file(R"({"type":"Unigram","vocab":[]})", "null")) ==
        "tokenizer.json: the model 'Unigram' is not supported; supported are BPE, WordPiece and WordLevel");
  CHECK(fault(file(bpe(), "null")) == "tokenizer.json: the pre_tokenizer 'null' is not supported; supported for BPE are ByteLevel, and "
                                      "Split by a known pattern or Digits followed by ByteLevel");
  CHECK(fault(file(bpe(), R"({"type":"Metaspace"})")).starts_with("tokenizer.json: the pre_tokenizer 'Metaspace' is not supported"));
  CHECK(fault(file(bpe(), R"({"type":"ByteLevel","use_regex":false})"))
            .starts_with("tokenizer.json: the pre_tokenizer 'ByteLevel with use_regex: false' is not supported"));
  CHECK(fault(file(bpe(R"("byte_fallback":true)"), kByteLevel)) ==
        "tokenizer.json: the model 'BPE with byte_fallback' is not supported; supported with it are the normalizer and pre_tokenizer of "
        "Llama 2 and Gemma, and Metaspace with split: false");
  CHECK(fault(file(bpe(R"("end_of_word_suffix":"</w>")"), kByteLevel)) ==
        "tokenizer.json: the model 'BPE with end_of_word_suffix' is not supported; supported is byte-level BPE");
  CHECK(fault(file(bpe(R"("dropout":0.1)"), kByteLevel)) ==
        "tokenizer.json: the model 'BPE with dropout' is not supported; supported is BPE without dropout");
  CHECK(fault(file(bpe(), kByteLevel, R"("normalizer":{"type":"NFKC"})")) ==
        "tokenizer.json: the normalizer 'NFKC' is not supported; supported for BPE are NFC and null");
  CHECK(fault(file(bpe(), kByteLevel, R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Lowercase"}]})")) ==
        "tokenizer.json: the normalizer 'Lowercase' is not supported; supported for BPE are NFC and null");
  CHECK(fault(file(bpe(), kByteLevel, R"("decoder":{"type":"Metaspace"})")) ==
        "tokenizer.json: the decoder 'Metaspace' is not supported; supported for BPE is ByteLevel");
  const std::string split =
      R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\d"},"behavior":"Isolated","invert":false},)"
      R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
  CHECK(fault(file(bpe(), split)) == "split pattern: \\d is not known, expected the pattern of gpt2, llama3, qwen2, smollm");
  CHECK(fault(file(kWordPiece, R"({"type":"Whitespace"})", R"("normalizer":{"type":"BertNormalizer"})")) ==
        "tokenizer.json: the pre_tokenizer 'Whitespace' is not supported; supported for WordPiece is BertPreTokenizer");
  CHECK(fault(file(kWordPiece, R"({"type":"BertPreTokenizer"})")) ==
        "tokenizer.json: the normalizer 'null' is not supported; supported for WordPiece is BertNormalizer");
}

TEST_CASE("tokenizer.json: faults of the file") {
  CHECK(fault(R"({"model":{"type":"BPE"},"pre_tokenizer":)" + kByteLevel + "}") ==
        "tokenizer.json: the model has no vocabulary of tokens and ids");
  CHECK(fault(file(R"({"type":"BPE","vocab":{"a":"x"}})", kByteLevel)) == "vocabulary: the id of 'a' is not an integer");
  CHECK(fault(file(R"({"type":"BPE","vocab":{"a":0,"b":0}})", kByteLevel)) == "vocabulary: 'a' and 'b' have the same id 0");
  CHECK(fault(file(R"({"type":"BPE","vocab":{"a":-1}})", kByteLevel)) ==
        "vocabulary: the id -1 of 'a', one of 1 tokens, is outside 0 ... 1025");
  CHECK(fault(file(R"({"type":"BPE","vocab":{"a":1000000000000}})", kByteLevel)) ==
        "vocabulary: the id 1000000000000 of 'a', one of 1 tokens, is outside 0 ... 1025");
  CHECK(fault(file(R"({"type":"BPE","vocab":{"a":0},"merges":["ab"]})", kByteLevel)) ==
        "tokenizer.json: merge 0 does not consist of two tokens");
  CHECK(fault(file(R"({"type":"BPE","vocab":{}})", kByteLevel)) == "tokenizer: the vocabulary is empty");
  CHECK(fault(file(bpe(R"("unk_token":3)"), kByteLevel)) == "tokenizer: unk_token: 3, expected a string");
  CHECK(fault(R"({"name":"eos","behind":"page","piece":"x","tokenizer":{"name":"byte"}})") ==
        "tokenizer: behind: expected one of none, line, document, got 'page'");
  CHECK(fault("{\"model\":\"\xff\"}") == "tokenizer: invalid JSON at byte 11 of 13");
}

TEST_CASE("opening: merges with their vocabulary, under both pairs of names") {
  const ScratchFolder folder;
  for (const auto& [merges, vocabulary] :
      {std::pair{"gpt2/vocab.bpe", "gpt2/encoder.json"}, {"other/merges.txt", "other/vocab.json"}, {"my-merges.txt", "my-vocab.json"}}) {
    folder.write(merges, "#version: 0.2\r\na b\r\n\nĠ ab");
    folder.write(vocabulary, vocabulary_json());
    const auto tokenizer = open_tokenizer(folder / merges);
    CHECK(tokenizer->encode("ab ab") == Ids{256, 257});
  }
  CHECK(open_tokenizer(folder / "gpt2")->vocab_size() == 258);
}

TEST_CASE("opening: vocab.txt, cased and uncased") {
  const ScratchFolder folder;
  const std::string path = folder.write("bert-vocab.txt", "[PAD]\r\n[UNK]\r\n[MASK]\r\ne\r\nÉ\r\n##s\r\n");
  CHECK(open_tokenizer(path)->encode("És E [MASK]") == Ids{4, 5, 1, 2});
  CHECK(open_tokenizer(path, {.lowercase = true})->encode("És E [MASK]") == Ids{3, 5, 3, 2});
  CHECK(open_tokenizer(path)->vocab_size() == 6);
}

TEST_CASE("opening: a tokenizer.json, and a folder with one") {
  const ScratchFolder folder;
  const WordTokenizer words(Vocabulary(std::vector<std::string>{"<unk>", "a"}), {});
  folder.write("run/tokenizer.json", words.to_json());
  CHECK(open_tokenizer(folder / "run")->hash() == words.hash());
  CHECK(open_tokenizer(folder / "run/tokenizer.json")->encode("a b") == Ids{1, 0});
}

TEST_CASE("opening: errors name the file") {
  const ScratchFolder folder;
  const std::string merges = folder.write("vocab.bpe", "a b\n");
  CHECK(error_of([&] { open_tokenizer(merges); }) == merges + ": needs encoder.json in the same folder");
  folder.write("encoder.json", "{\"a\": 0, \"b\": 1}");
  CHECK(error_of([&] { open_tokenizer(merges); }) ==
        merges + ": bpe tokenizer: merge 0 needs the token 'ab', which is not in the vocabulary");
  folder.write("encoder.json", "{\"a\": 0, \"b\": 1, \"ab\": 1.5}");
  CHECK(error_of([&] { open_tokenizer(merges); }) == folder / "encoder.json" + ": vocabulary: the id of 'ab' is not an integer");
  folder.write("vocab.bpe", "#version\na  b\n");
  folder.write("encoder.json", "{\"a\": 0}");
  CHECK(error_of([&] { open_tokenizer(merges); }) == merges + ": line 2: expected two tokens separated by a blank, got 'a  b'");
  const std::string plain = folder.write("vocab.txt", "[UNK]\na\na\n");
  CHECK(error_of([&] { open_tokenizer(plain); }) == plain + ": vocabulary: 'a' has two ids, 1 and 2");
  folder.write("vocab.txt", "a\nb\n");
  CHECK(error_of([&] { open_tokenizer(plain); }) ==
        plain + ": wordpiece tokenizer: the token '[UNK]' for unknown words is not in the vocabulary");
  folder.write("vocab.txt", "[UNK]\n\xe9\n");
  CHECK(error_of([&] { open_tokenizer(plain); }) == plain + ": vocabulary: byte 6 (value 0xe9) is not valid UTF-8");
  const std::string other = folder.write("notes.txt", "");
  CHECK(error_of([&] { open_tokenizer(other); }) ==
        other + ": is not a tokenizer file, expected tokenizer.json, vocab.bpe, *merges.txt or *vocab.txt");
  for (const auto& [name, program] : {std::pair("tokenizer.model", "SentencePiece"), {"qwen.tiktoken", "tiktoken"}}) {
    const std::string foreign = folder.write(std::string("foreign/") + name, "\n\x0e");
    CHECK(error_of([&] { open_tokenizer(foreign); }) ==
          foreign + ": is a " + program +
              " vocabulary; AutoTokenizer.from_pretrained(FOLDER).save_pretrained(NEW) of transformers writes a tokenizer.json");
  }
  CHECK(
      error_of([&] { open_tokenizer(folder / "foreign"); }).starts_with(folder / "foreign/tokenizer.model: is a SentencePiece vocabulary"));
  const std::string json = folder.write("tokenizer.json", R"({"model":{"type":"Unigram","vocab":[]}})");
  CHECK(error_of([&] { open_tokenizer(json); }) ==
        json + ": tokenizer.json: the model 'Unigram' is not supported; supported are BPE, WordPiece and WordLevel");
  CHECK(error_of([&] { open_tokenizer(json, {.lowercase = true}); }) ==
        json + ": lower case applies only to a vocab.txt; other files define their own case");
  folder.write("empty/readme", "");
  CHECK(error_of([&] { open_tokenizer(folder / "empty"); }) ==
        folder / "empty" + ": this folder has no tokenizer.json, vocab.bpe, merges.txt or vocab.txt");
  CHECK(contains(error_of([&] { open_tokenizer(folder / "gone.json"); }), "gone.json: No such file"));
}
