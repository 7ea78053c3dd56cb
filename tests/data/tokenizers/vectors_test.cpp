// Ids against vectors from other programs: with the small vocabularies in this folder, with those from GPT-2 and BERT, and of conversations
// with the templates of transformers (tests/interop/templates.py stored them). Markers written by a user, rejected templates and lines, and
// pairs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "core/json.h"
#include "data/text/utf8.h"
#include "data/tokenizers/bpe/bpe_tokenizer.h"
#include "data/tokenizers/chat.h"
#include "data/tokenizers/kinds.h"
#include "data/tokenizers/training/training.h"
#include "tests/bounded.h"
#include "tests/data/encoded.h"
#include "tests/data/files.h"
#include "tests/data/ids.h"
#include "tests/skip.h"

using namespace ricci;
using namespace test_data;

namespace {

using Numbers = std::vector<int64_t>;

std::shared_ptr<const Tokenizer> tokenizer_with(const std::string& file, const std::vector<std::string>& markers) {
  return with_additions(*open_tokenizer(std::string(RICCI_TESTS_FOLDER) + "/data/tokenizers/small/" + file), {.pieces = markers});
}

std::shared_ptr<const Tokenizer> with_markers() { return tokenizer_with("gpt2.json", {"<|im_start|>", "<|im_end|>"}); }

ChatEncoder chatml() { return {with_markers(), chat_template({"chatml"})}; }

Numbers numbers(const Json& object, const char* key) { return object.at(key).get<Numbers>(); }

std::string text(const Json& object, const char* key) { return object.at(key).get<std::string>(); }

std::string line_of(const std::string& user, const std::string& assistant) {
  const auto message = [](const char* role, const std::string& content) { return Json{{"role", role}, {"content", content}}; };
  return Json{{"messages", Json::array({message("user", user), message("assistant", assistant)})}}.dump();
}

std::string refused(const std::string& line) {
  return error_of([&] { chatml().encode(line); });
}

std::vector<Json> json_lines(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(parse_json(line, "vectors"));
  return lines;
}

std::string decoded_as_stream(const Tokenizer& tokenizer, const Numbers& ids) {
  DecodeState state;
  std::string text;
  for (const int64_t id : ids) {
    const std::string next = tokenizer.decode_next(id, state);
    CHECK(complete_utf8_prefix(next) == next.size());
    text += next;
  }
  return text + tokenizer.decode_end(state);
}

// The number of lines; a different line fails.
size_t compare(const Tokenizer& tokenizer, const std::vector<Json>& lines, const char* key) {
  for (const Json& line : lines) {
    INFO("text: ", text(line, "text"));
    CHECK(tokenizer.encode(text(line, "text")) == numbers(line, key));
  }
  return lines.size();
}

// The vocabulary and merges of small/gpt2.json in separate files, with this name prefix.
void write_pair(const ScratchFolder& folder, const std::string& prefix) {
  const std::string path = std::string(RICCI_TESTS_FOLDER) + "/data/tokenizers/small/gpt2.json";
  const Json model = parse_json(read_file(path), "tokenizer").at("model");
  std::string merges = "#version: 0.2\n";
  for (const auto& [left, right] : model.at("merges").get<std::vector<std::pair<std::string, std::string>>>())
    merges += left + " " + right + "\n";
  folder.write(prefix + "merges.txt", merges);
  folder.write(prefix + "vocab.json", model.at("vocab").dump());
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

TEST_CASE("a pair of vocabulary and merges: GPT-2's as OpenAI publishes it, without added tokens") {
  const ScratchFolder bare, other;
  write_pair(bare, "");
  write_pair(other, "my-");
  bare.write("config.json", R"({"model_type": "gpt2", "tokenizer_class": "GPT2TokenizerFast"})");
  for (const std::string& path : {bare.path(), bare / "merges.txt", other / "my-merges.txt"})
    CHECK(open_tokenizer(path)->encode("12 <|endoftext|>") == Numbers{17, 18, 324, 92, 397, 452, 506, 92, 30});
}

TEST_CASE("a pair of vocabulary and merges: files next to it that can name another class or more tokens are refused, with the way out") {
  const std::string only = ": merges with a vocabulary are supported only for GPT-2 without added tokens; save_pretrained of transformers "
                           "writes a tokenizer.json";
  const struct {
    const char *name, *text;
    std::string error;  // after the path
  } cases[] = {
      {"config.json", R"({"model_type": "llama"})", ": model_type: llama" + only},
      {"config.json", R"({"model_type": "qwen2", "tokenizer_class": "GPT2Tokenizer"})", ": model_type: qwen2" + only},
      {"config.json", R"({"model_type": "gpt2", "tokenizer_class": "Qwen2TokenizerFast"})", ": tokenizer_class: Qwen2TokenizerFast" + only},
      {"config.json", R"({"model_type": 3})", ": model_type: 3, expected a string"},
      {"tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer", "pad_token": "<pad>"})", only},
      {"special_tokens_map.json", R"({"eos_token": "</s>"})", only},
      {"added_tokens.json", R"({"<|im_end|>": 600})", only},
      {"config.json", "[]", ": expected a JSON object"},
  };
  for (const auto& [name, text, error] : cases) {
    const ScratchFolder folder;
    write_pair(folder, "");
    const std::string path = folder.write(name, text);
    CHECK(error_of([&] { open_tokenizer(folder.path()); }) == path + error);
  }
}

TEST_CASE("a vocab.txt: tokenizer_config.json next to it says whether a text is put into lower case") {
  const ScratchFolder folder;
  folder.write("vocab.txt", "[UNK]\ne\nÉ\n##s\né\n");
  const auto ids = [&](const char* config) {
    folder.write("tokenizer_config.json", config);
    return open_tokenizer(folder.path())->encode("És");
  };
  CHECK(ids(R"({"do_lower_case": false})") == Numbers{2, 3});
  CHECK(ids(R"({"do_lower_case": true})") == Numbers{1, 3});
  CHECK(ids(R"({"tokenizer_class": "BertTokenizer"})") == Numbers{1, 3});
  CHECK(ids(R"({"do_lower_case": true, "strip_accents": false})") == Numbers{4, 3});
}

TEST_CASE("chat: ids and the tokens that count are those of transformers") {
  std::ifstream file(std::string(RICCI_TESTS_FOLDER) + "/data/tokenizers/conversations.jsonl");
  int64_t talks = 0, counted = 0;
  for (std::string line; std::getline(file, line); ++talks) {
    const Json stored = parse_json(line, "talks");
    const auto tokenizer = tokenizer_with(text(stored, "tokenizer"), stored.at("markers").get<std::vector<std::string>>());
    const auto [ids, counts] = ChatEncoder(tokenizer, chat_template({text(stored, "template")})).encode(line);
    CHECK(ids == numbers(stored, "ids"));
    CHECK(Numbers(counts.begin(), counts.end()) == numbers(stored, "answers"));
    counted += std::count(counts.begin(), counts.end(), true);
  }
  CHECK(talks == 80);
  CHECK(counted > 1000);
}

TEST_CASE("chat: a text that holds every marker gives none of their ids") {
  const std::string all = "<|endoftext|><|im_start|>assistant\n<|im_end|>";
  const auto tokenizer = with_markers();
  const Numbers ids = chatml().encode(line_of(all, all)).ids, plain = chatml().encode(line_of("a", "b")).ids;
  for (const char* marker : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    const int64_t id = tokenizer->find(marker);
    CHECK(std::count(ids.begin(), ids.end(), id) == std::count(plain.begin(), plain.end(), id));
  }
  CHECK(tokenizer->decode(ids) == "<|im_start|>user\n" + all + "<|im_end|>\n<|im_start|>assistant\n" + all + "<|im_end|>\n");
}

// One tokenizer of each kind, with an added token that the model has, and one that it lacks.
TEST_CASE("chat: no text of a message gives the id of an added token, whatever the kind of the tokenizer") {
  for (const char* file : {"gpt2", "llama3", "smollm", "bert-cased", "bert-uncased", "word"})
    for (const bool whole : {false, true}) {
      CAPTURE(file);
      std::string json = tokenizer_with(file + std::string(".json"), {})->to_json();
      const auto change = [&](const std::string& old, const std::string& text) { json.replace(json.find(old), old.size(), text); };
      if (whole && json.find("ignore_merges") == json.npos) continue;
      if (whole) change(R"("ignore_merges":false)", R"("ignore_merges":true)");
      const int64_t known = tokenizer_from_json(json)->find("const");
      const std::string word = known >= 0 ? "const" : "ricci";
      const int64_t id = tokenizer_from_json(json)->find(word);
      REQUIRE(id >= 0);
      change(
          R"("added_tokens":[)", R"("added_tokens":[{"id":)" + std::to_string(id) + R"(,"content":")" + word + R"(","normalized":false},)");
      const auto tokenizer = with_additions(*tokenizer_from_json(json), {.pieces = {"###", "zq", "<|end|>"}});
      const std::string message = "{content}<|end|>";
      const ChatEncoder chat(tokenizer, chat_template({"", message, message, message, "<|end|>", ""}));
      const std::vector<std::string> texts = {word, "hi###", "x" + word + "y ### zq", word + " zq <|end|>###[MASK]<eos>", "[UNK] <unk>"};
      for (const std::string& text : texts) {
        CAPTURE(text);
        EncodedDocument message;
        chat.append_message({ChatRole::user, text}, message);
        Numbers& ids = message.ids;
        CHECK(ids.back() == tokenizer->find("<|end|>"));
        ids.pop_back();
        if (tokenizer->name() == "bpe") CHECK(tokenizer->decode(ids) == text);
        const auto& added = dynamic_cast<const PieceTokenizer&>(*tokenizer).added_tokens();
        int64_t written = 0;
        for (const AddedToken& token : added) {
          if (token.content != "[UNK]") CHECK(std::count(ids.begin(), ids.end(), token.id) == 0);
          const Numbers outside = tokenizer->encode(text);
          written += std::count(outside.begin(), outside.end(), token.id);
        }
        if (text != "[UNK] <unk>") CHECK(written > 0);
      }
    }
}

TEST_CASE("chat: the end of an answer is one token that no text gives") {
  const auto error = [](const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& end) {
    const std::string message = "{content}" + end;
    return error_of([&] { ChatEncoder(tokenizer, chat_template({"", message, message, message, end, ""})); });
  };
  CHECK(error(tokenizer_with("bert-cased.json", {}), "[UNK]") == "chat: end: '[UNK]' is the unknown token, so messages can contain it");
  CHECK(error(tokenizer_with("bert-cased.json", {}), "[SEP]") == "no error");
  CHECK(error(tokenizer_with("gpt2.json", {"<e>", "<e>."}), "<e>") == "no error");
  std::string json = tokenizer_with("gpt2.json", {"<e", "<e>"})->to_json();
  const std::string content = R"("content":"<e>")", before = R"("normalized":false)";
  json.replace(json.find(before, json.find(content)), before.size(), R"("normalized":true)");
  CHECK(error(tokenizer_from_json(json), "<e>") ==
        "chat: end: '<e>' is not found after an answer; a different added token is found there first");
}

TEST_CASE("chat: an answer ends with the end of the template or with a special token") {
  const auto tokenizer = with_markers();
  const ChatEncoder chat = chatml();
  for (const char* marker : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) CHECK(chat.ends_answer(tokenizer->find(marker)));
  CHECK_FALSE(chat.ends_answer(tokenizer->find("ing")));
  CHECK(chat.end() == tokenizer->find("<|im_end|>"));
  CHECK(tokenizer->decode(chat.answer()) == "<|im_start|>assistant\n");
  CHECK(tokenizer->decode(chat.rest()) == "\n");
  // A token that ends texts need not be special.
  const auto marked = with_additions(*tokenizer, {.marks = {.ends = {tokenizer->find("ing")}}});
  CHECK(ChatEncoder(marked, chat_template({"chatml"})).ends_answer(tokenizer->find("ing")));
}

TEST_CASE("chat: the template decides what starts a conversation, whatever token starts the other texts of the tokenizer") {
  const auto plain =
      tokenizer_with("llama3.json", {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|im_start|>", "<|im_end|>"});
  const int64_t first = plain->find("<|begin_of_text|>");
  const auto marked = with_additions(*plain, {.marks = {.first = first}});
  REQUIRE(marked->marks().first == first);
  const std::string line = line_of("a", "b");
  for (const char* name : {"llama3", "chatml"}) {
    const ChatEncoder chat(marked, chat_template({name}));
    const Numbers ids = chat.encode(line).ids;
    CHECK(ids == ChatEncoder(plain, chat_template({name})).encode(line).ids);
    CHECK(std::count(ids.begin(), ids.end(), first) == (name == std::string("llama3") ? 1 : 0));
    CHECK(chat.start() == (name == std::string("llama3") ? Numbers{first} : Numbers()));
  }
}

TEST_CASE("chat: six strings are a template") {
  const std::vector<std::string> six{"", "[S]{content}<e>", "[U]{content}[/U]", "{content}<e>", "<e>", ""};
  const auto tokenizer = tokenizer_with("gpt2.json", {"[S]", "[U]", "[/U]", "<e>"});
  const auto [ids, counts] = ChatEncoder(tokenizer, chat_template(six)).encode(line_of("<e>a", "b"));
  CHECK(tokenizer->decode(ids) == "[U]<e>a[/U]b<e>");
  CHECK(ids.back() == tokenizer->find("<e>"));
  REQUIRE(counts.size() == ids.size());
  CHECK(counts.end() - std::find(counts.begin(), counts.end(), true) == 2);
  CHECK(std::count(counts.begin(), counts.end(), true) == 2);
  const auto fault = [&](size_t changed, const std::string& text) {
    auto named = six;
    named[changed] = text;
    return error_of([&] { ChatEncoder(tokenizer, chat_template(named)); });
  };
  CHECK(fault(2, "[U]") == "chat: user: '[U]' contains {content} 0 times, expected once");
  CHECK(fault(3, "{content}[/U]") == "chat: assistant: '{content}[/U]' does not begin with 'answer', {content} and 'end'");
  CHECK(fault(1, "<|no|>{content}") ==
        "chat: the tokenizer lacks the markers '<|no|>'; ricci tokenize train TEXTS --from FILE --keep-all --special '<|no|>' adds them");
  CHECK(fault(2, "<|a|>{content}<|b|><|a|>") == "chat: the tokenizer lacks the markers '<|a|>', '<|b|>'; ricci tokenize train TEXTS --from "
                                                "FILE --keep-all --special '<|a|>' --special "
                                                "'<|b|>' adds them");
  CHECK(error_of([] { chat_template({"alpaca"}); }) ==
        "chat: expected chatml, llama3, or six strings (start, system, user, assistant, end and answer), got a list of length 1");
}

TEST_CASE("chat: lines that are not conversations are errors") {
  const auto one = [](const std::string& message) {
    return refused(R"({"messages": [{"role": "user", "content": "a"}, )" + message + "]}");
  };
  CHECK(refused("[]") == "expected an object with a list \"messages\"");
  CHECK(refused(R"({"messages": []})") == "\"messages\" is empty");
  CHECK(refused(R"({"messages": [], "tools": [{}]})") == "\"tools\": conversations with tools are not supported");
  CHECK(one("3") == "message 2: expected an object with the string member \"role\"");
  CHECK(one(R"({"role": "tool", "content": "a"})") == "message 2: role 'tool', expected system, user, assistant");
  CHECK(one(R"({"role": "user", "content": [{"type": "text"}]})") == "message 2: \"content\" must be a string");
  CHECK(one(R"({"role": "assistant", "content": null})") == "message 2: \"content\" must be a string");
  CHECK(one(R"({"role": "assistant", "content": "a", "tool_calls": [{}]})") ==
        "message 2: \"tool_calls\": conversations with tools are not supported");
  CHECK(one(R"({"role": "assistant", "content": "a", "weight": 0.5})") == "message 2: \"weight\": 0.5, expected 0 or 1");
  CHECK(one(R"({"role": "assistant", "content": "a", "train": "no"})") == "message 2: \"train\": \"no\", expected true or false");
  CHECK(contains(refused(std::string(100, '[') + std::string(100, ']')), "nested more than 64 levels deep"));
}

TEST_CASE("chat: an answer of weight 0 is read and not learned") {
  const ChatEncoder chat = chatml();
  const auto encoded = [&](const std::string& keys, const std::string& other = "") {
    return chat.encode(R"({"messages": [{"role": "user", "content": "a")" + other + R"(}, {"role": "assistant", "content": "yo")" + keys +
                       R"(}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "d"}]})");
  };
  const auto learned = [](const EncodedDocument& document) { return std::count(document.counts.begin(), document.counts.end(), true); };
  const EncodedDocument all = encoded("");
  for (const char* const key : {R"(, "weight": 0)", R"(, "weight": 0.0)", R"(, "train": false)", R"(, "weight": 1, "train": false)"}) {
    CHECK(encoded(key).ids == all.ids);
    CHECK(learned(encoded(key)) == 2);  // d and the marker after it
    CHECK(encoded(key).counts.end()[-2]);
  }
  for (const char* const key : {R"(, "weight": 1)", R"(, "weight": null)", R"(, "train": true)"}) CHECK(encoded(key).counts == all.counts);
  CHECK(encoded("", R"(, "weight": 1, "train": true)").counts == all.counts);
}

TEST_CASE("chat: half a million messages, and deep or long ones, end in one line under a bound") {
  const ChatEncoder chat = chatml();
  const auto error = [&](const std::string& line) {
    return test::bounded_error([&] { chat.encode(line); }, {.seconds = 10, .mebibytes = 512});
  };
  std::string many;
  for (int64_t i = 0; i < 500'000; ++i) many += R"({"role":"user","content":"a"},)";
  many.back() = ']';
  CHECK(error(R"({"messages":[)" + many + "}") == "JSON: more than 1048576 values");
  CHECK(error(R"({"messages":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}") ==
        "JSON: the JSON is nested more than 64 levels deep");
  CHECK(error(std::string((64 << 20) + 1, ' ')) == "JSON: has 67108865 bytes, expected at most 67108864");
  CHECK(error(R"({"messages":[{"role":"user","content":")" + std::string(1 << 20, 'a') + "\"}]}") == "no error");
}

TEST_CASE("pairs: a prompt as a user asks it, and an answer and its end that count") {
  const auto plain = tokenizer_with("gpt2.json", {});
  const auto marked = with_eos(with_additions(*plain, {.marks = {.first = plain->find("!")}}), Eos::document);
  const auto pair = [](const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& line) {
    return kPairs.encoder(tokenizer, {})(line);
  };
  const std::string line = R"({"prompt": "the qu", "id": 3, "answer": "ick"})";
  for (const auto& tokenizer : {plain, marked}) {
    const auto [ids, counts] = pair(tokenizer, line);
    Numbers expected = tokenizer->encode_start("the qu");
    const size_t prompt = expected.size();
    for (const int64_t id : tokenizer->encode("ick")) expected.push_back(id);
    tokenizer->append_end("ick", expected);
    CHECK(ids == expected);
    REQUIRE(counts.size() == ids.size());
    for (size_t i = 0; i < counts.size(); ++i) CHECK(counts[i] == (i >= prompt));
  }
  CHECK(pair(marked, line).ids.front() == plain->find("!"));
  CHECK(pair(marked, line).ids.back() == plain->find("<|endoftext|>"));
  CHECK(pair(plain, R"({"prompt": "", "answer": ""})").ids.empty());
  CHECK(pair(marked, R"({"prompt": "a", "answer": ""})").counts == std::vector<bool>{false, false, true});
  CHECK(kPairs.texts(line) == std::vector<std::string>{"the qu", "ick"});
  const std::string expects = "expected an object with the string members \"prompt\" and \"answer\"";
  for (const char* bad : {R"({"prompt": "a"})", R"({"answer": "a"})", R"({"prompt": "a", "answer": 3})", R"(["prompt", "answer"])"})
    CHECK(error_of([&] { pair(plain, bad); }) == expects);
  CHECK(contains(error_of([&] { pair(plain, R"({"prompt": "a", )"); }), "JSON: invalid JSON"));
}

TEST_CASE("vectors: the small vocabularies give the ids and texts of Hugging Face's tokenizers") {
  const std::string folder = std::string(RICCI_TESTS_FOLDER) + "/data/tokenizers/";
  std::map<std::string, std::shared_ptr<const Tokenizer>> tokenizers;
  const std::vector<Json> lines = json_lines(folder + "vectors.jsonl");
  for (const Json& line : lines) {
    const std::string name = text(line, "tokenizer");
    auto& tokenizer = tokenizers[name];
    if (!tokenizer) tokenizer = open_tokenizer(folder + "small/" + name);
    const Numbers ids = numbers(line, "ids");
    INFO(name, ", text: ", text(line, "text"));
    CHECK(tokenizer->encode(text(line, "text")) == ids);
    CHECK(replace_invalid_utf8(tokenizer->decode(ids)) == text(line, "decoded"));
    CHECK(decoded_as_stream(*tokenizer, ids) == tokenizer->decode(ids));
  }
  CHECK(lines.size() == 750);
  CHECK(tokenizers.size() == 6);
}

TEST_CASE("vectors: added tokens of all flags, in texts, in parts of texts and in messages") {
  const std::string message = "{content}<|end|>";
  int64_t messages = 0, cuts = 0;
  for (const Json& line : json_lines(std::string(RICCI_TESTS_FOLDER) + "/data/tokenizers/flags.jsonl")) {
    const auto tokenizer = tokenizer_from_json(line.at("tokenizer").dump()), again = tokenizer_from_json(tokenizer->to_json());
    CHECK(again->hash() == tokenizer->hash());
    INFO(tokenizer->to_json());
    const auto chat = [&] { return ChatEncoder(tokenizer, chat_template({"", message, message, message, "<|end|>", ""})); };
    for (const Json& each : line.at("texts")) {
      const std::string text = each.at("text");
      const Numbers ids = numbers(each, "ids");
      INFO("text: ", text);
      CHECK(tokenizer->encode(text) == ids);
      CHECK(again->encode(text) == ids);
      for (size_t known = 1; known <= text.size(); ++known) {
        const size_t cut = tokenizer->complete_prefix(text.substr(0, known));
        REQUIRE(cut <= known);
        if (cut == 0) continue;
        Numbers both = tokenizer->encode(text.substr(0, cut));
        for (const int64_t id : tokenizer->encode(text.substr(cut))) both.push_back(id);
        CHECK(both == ids);
        ++cuts;
      }
      if (!member(each, "message").is_array()) {
        CHECK(contains(error_of(chat), "which other texts need; leave it out of the added tokens"));
        continue;
      }
      Numbers expected = numbers(each, "message");
      EncodedDocument found;
      expected.push_back(tokenizer->find("<|end|>"));
      chat().append_message({ChatRole::user, text}, found);
      CHECK(found.ids == expected);
      ++messages;
    }
  }
  CHECK(messages > 100);
  CHECK(cuts > 100);
}

TEST_CASE("vectors: GPT-2 and BERT" * doctest::test_suite("needs tokenizers")) {
  const std::string folder = corpus("tokenizers");
  if (folder.empty()) return test::skip("needs tokenizers/ under $RICCI_DATA");
  const auto gpt2 = open_tokenizer(folder + "/gpt2/vocab.bpe");
  CHECK(gpt2->vocab_size() == 50257);
  const std::vector<Json> lines = json_lines(folder + "/vectors/gpt2-vectors.jsonl");
  CHECK(compare(*gpt2, lines, "ids") == 333);
  for (const Json& line : lines) CHECK(gpt2->decode(numbers(line, "ids")) == text(line, "text"));
  const std::vector<Json> bert = json_lines(folder + "/vectors/bert-vectors.jsonl");
  CHECK(compare(*open_tokenizer(folder + "/bert/bert-base-cased-vocab.txt"), bert, "cased_ids") == 272);
  CHECK(compare(*open_tokenizer(folder + "/bert/bert-base-uncased-vocab.txt", {.lowercase = true}), bert, "uncased_ids") == 272);
}

TEST_CASE("vectors: whole corpora in GPT-2's tokens" * doctest::test_suite("needs tokenizers")) {
  const std::string folder = corpus("tokenizers");
  if (folder.empty()) return test::skip("needs tokenizers/ under $RICCI_DATA");
  const auto gpt2 = open_tokenizer(folder + "/gpt2/vocab.bpe");
  const Json totals = parse_json(read_file(folder + "/vectors/gpt2-corpus-totals.json"), "totals");
  const ScratchFolder scratch;
  int found = 0;
  for (const auto& [name, total] : totals.items()) {
    const std::string plain = corpus(name), path = plain.empty() ? corpus(name + ".gz") : plain;
    if (path.empty()) continue;  // a part of a file, made by nanoGPT's split
    ++found;
    std::string packed;
    for_each_encoded({TextSource(path)}, *gpt2, [&](const DocumentPiece&, std::span<const int64_t> ids) {
      for (const int64_t id : ids) (packed += static_cast<char>(id & 0xff)) += static_cast<char>(id >> 8);
    });
    INFO(path);
    CHECK(static_cast<int64_t>(packed.size()) == 2 * total.at("tokens").get<int64_t>());
    CHECK(sha256_of(scratch.write("ids", packed)) == text(total, "sha256_u16le"));
  }
  CHECK(found == 5);
}
