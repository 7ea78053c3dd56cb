// The token between two documents for every format, kind of tokenizer and family, with ids by hand. And vocabularies smaller than
// requested.
#include "apps/run/corpus.h"

#include <doctest/doctest.h>

#include "apps/run/config.h"
#include "data/shards/prepare.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/training/training.h"
#include "tests/bounded.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

using Ids = std::vector<int64_t>;

Ids ids_of(const Tokens& tokens) {
  Ids ids(static_cast<size_t>(tokens.size()));
  tokens.read(0, ids);
  return ids;
}

// Three documents: ab, ba, ab.
struct ThreeDocuments {
  ScratchFolder folder;
  std::string jsonl = folder.write("a.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"ba\"}\n{\"text\": \"ab\"}\n"),
              tsv = folder.write("a.tsv", "0\tab\n1\tba\n0\tab\n"), text = folder.write("a.txt", "ab\nba\nab\n");

  std::string path(const std::string& format) const { return format == "jsonl" ? jsonl : format == "tsv" ? tsv : text; }
  TrainConfig config(const std::string& format, std::vector<std::string> keys) const {
    for (const char* key : {"data=", "validation="}) keys.push_back(key + path(format));
    keys.push_back("format=" + format);
    return load_config<TrainConfig>("", keys);
  }
};

// A vocabulary file with two words and added tokens.
std::string word_file(const std::string& added) {
  return R"({"added_tokens":[)" + added +
         R"(],"normalizer":null,"pre_tokenizer":{"type":"WhitespaceSplit"},"model":{"type":"WordLevel","vocab":{"<unk>":0,"ab":1}}})";
}

}  // namespace

TEST_CASE("documents: the token between them, by format, tokenizer and family") {
  const ThreeDocuments documents;
  const bool none = false, line = true;  // a line: nothing separates the documents
  const std::string words = documents.folder.write("words.json", word_file("")),
                    pieces = documents.folder.write("vocab.txt", "[UNK]\nb\n##a\nab\n"),
                    marked = documents.folder.write("marked.json", word_file(R"({"id":2,"content":"<stop>","eos":true})"));
  const auto letters = tokenizer_from_json(R"({"name":"char","characters":"ab"})");
  const std::string ended = documents.folder.write("ended.json", with_eos(letters, Eos::document, "<end>")->to_json());
  const struct {
    std::vector<std::string> keys;
    std::string format;
    Ids ids;
    Eos eos;
    bool has_line;
  } table[] = {
      {{}, "text", {1, 2, 0, 2, 1, 0, 1, 2, 0}, Eos::none, none},  // \n a b
      {{}, "jsonl", {1, 2, 3, 2, 1, 3, 1, 2, 3}, Eos::document, none},
      {{}, "tsv", {1, 2, 3, 2, 1, 3, 1, 2, 3}, Eos::document, none},
      {{"eos=none"}, "jsonl", {1, 2, 2, 1, 1, 2}, Eos::none, none},
      {{"eos=null"}, "jsonl", {1, 2, 3, 2, 1, 3, 1, 2, 3}, Eos::document, none},
      {{"eos=line"}, "text", {1, 2, 3, 2, 1, 3, 1, 2, 3}, Eos::line, none},
      {{"eos=document"}, "text", {1, 2, 0, 2, 1, 0, 1, 2, 0, 3}, Eos::document, none},
      {{"model.family=coarse", "model.scale=2"}, "jsonl", {1, 2, 3, 2, 1, 3, 1, 2, 3}, Eos::document, none},
      {{"model.family=topdown", "model.scales=[1, 2]"}, "tsv", {1, 2, 3, 2, 1, 3, 1, 2, 3}, Eos::document, none},
      {{"order=shuffled", "pack=best"}, "jsonl", {1, 2, 3, 2, 1, 3, 1, 2, 3}, Eos::document, none},
      {{"tokenizer=byte"}, "jsonl", {97, 98, 98, 97, 97, 98}, Eos::none, line},
      {{"tokenizer=byte", "eos=none"}, "jsonl", {97, 98, 98, 97, 97, 98}, Eos::none, none},
      {{"tokenizer=byte"}, "text", {97, 98, 10, 98, 97, 10, 97, 98, 10}, Eos::none, none},
      {{"tokenizer=word"}, "jsonl", {2, 1, 0, 1, 2, 1}, Eos::document, none},  // <unk> <eos> ab
      {{"tokenizer=word"}, "text", {1, 0, 1}, Eos::none, none},
      {{"tokenizer=bpe", "model.vocab=258"}, "jsonl", {257, 0, 66, 65, 0, 257, 0}, Eos::document, none},  // <eos>, 256 bytes from !, ab
      {{"tokenizer=" + pieces, "eos=document"}, "tsv", {3, 4, 1, 2, 4, 3, 4}, Eos::document, none},
      {{"tokenizer=" + pieces}, "tsv", {3, 1, 2, 3}, Eos::none, line},
      {{"tokenizer=" + marked}, "jsonl", {1, 2, 0, 2, 1, 2}, Eos::document, none},
      {{"tokenizer=" + marked}, "text", {1, 0, 1}, Eos::none, none},
      {{"tokenizer=" + words}, "jsonl", {1, 0, 1}, Eos::none, line},
      {{"tokenizer=" + words, "eos=document"}, "jsonl", {1, 2, 0, 2, 1, 2}, Eos::document, none},
      {{"tokenizer=" + words, "eos=none"}, "jsonl", {1, 0, 1}, Eos::none, none},
      {{"tokenizer=" + ended}, "jsonl", {0, 1, 2, 1, 0, 2, 0, 1, 2}, Eos::document, none},
      {{"tokenizer=word", "model.family=classifier", "label_field=1"}, "tsv", {1, 0, 1}, Eos::none, none},
  };
  for (const auto& row : table) {
    INFO(row.format << " " << (row.keys.empty() ? "" : row.keys[0]));
    TrainConfig config = documents.config(row.format, row.keys);
    const Corpus corpus = open_corpus(config);
    CHECK(ids_of(corpus.train) == row.ids);
    CHECK(corpus.tokenizer->eos() == row.eos);
    CHECK((describe_corpus(config, corpus).find("nothing separates the documents") != std::string::npos) == row.has_line);
    // Only the last id of a document ends a text that a model writes.
    if (row.eos == Eos::document) CHECK(corpus.tokenizer->marks().ends == Ids{row.ids.back()});
    CHECK(resolved(config, corpus.tokenizer.get()).eos == row.eos);
    // A later start uses the run's tokenizer, with any run file.
    CHECK(ids_of(open_corpus(config, tokenizer_from_json(corpus.tokenizer->to_json())).train) == ids_of(corpus.train));
  }
}

TEST_CASE("documents: conversations end with their template, whatever ends the documents of their tokenizer") {
  const ThreeDocuments documents;
  const std::string line = R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})";
  const std::string talks = documents.folder.write("talks.jsonl", line + "\n");
  const auto plain = train_bpe({{TextSource(documents.text)}}, {.vocab = 259, .special = {"<|im_start|>", "<|im_end|>", "<eos>"}});
  const std::string tokenizer = documents.folder.write("markers.json", plain->to_json());
  const TrainConfig config =
      load_config<TrainConfig>("", {"format=messages", "tokenizer=" + tokenizer, "data=" + talks, "validation=" + talks});
  CHECK(config.eos == Eos::none);
  const Ids expected = ids_of(open_corpus(config).train);
  CHECK(expected.back() == plain->find("\u010a"));  // the line end after <|im_end|>
  CHECK(ids_of(open_corpus(config, with_eos(plain, Eos::document)).train) == expected);
  CHECK(test::bounded_error([&] { open_corpus(config, with_eos(plain, Eos::line)); }) ==
        "chat: the tokenizer adds a token after every line, but a chat template contains line ends");
}

TEST_CASE("documents: shards have their own end, and a key about it is refused only if somebody wrote it") {
  const ThreeDocuments documents;
  const auto prepare = [&](const std::string& name, const std::shared_ptr<const Tokenizer>& tokenizer) {
    make_folders(documents.folder / name);
    prepare_shards({TextSource(documents.jsonl), {.format = format_of(kJsonl)}}, tokenizer, documents.folder / name, {});
    return "data=" + documents.folder / name;
  };
  const auto words = train_words({{TextSource(documents.text)}}, {});
  const std::string file = "tokenizer=" + documents.folder.write("words.json", words->to_json());
  const std::string data = prepare("ended", with_eos(words, Eos::document));
  for (const std::string& key : {std::string("eos=null"), std::string("tokenizer=word"), file}) {
    TrainConfig config = load_config<TrainConfig>("", {data, key});
    const Corpus corpus = open_corpus(config);
    CHECK(describe_corpus(config, corpus).empty());  // also about the default of the key tokenizer
    CHECK(resolved(config, corpus.tokenizer.get()).eos == Eos::document);
  }
  CHECK(test::bounded_error([&] {
    open_corpus(load_config<TrainConfig>("", {data, file, "eos=document"}));
  }).ends_with("already contains tokens; set --eos in ricci prepare"));
  const auto ended = std::make_shared<CharTokenizer>("ab", "<eos>");
  const std::string unended = prepare("open", ended).substr(5), closed = prepare("closed", with_eos(ended, Eos::document)).substr(5);
  CHECK(test::bounded_error([&] { open_corpus(load_config<TrainConfig>("", {"data=[" + unended + ", " + closed + "]"})); }) ==
        closed +
            ": the shards were made by a different tokenizer of 3 tokens, not by the char tokenizer of 3 tokens; ricci prepare --eos gives "
            "all shards the same end token");
}

TEST_CASE("vocabularies: a text that yields fewer tokens than asked for gives a smaller one, with a line") {
  const ThreeDocuments documents;
  struct Vocabulary {
    const char* kind;
    int64_t asked, size;
  };
  for (const Vocabulary& v : {Vocabulary{"bpe", 100'000, 258}, {"bpe", 258, 258}, {"word", 50, 3}}) {
    INFO(v.kind << " " << v.asked);
    const TrainConfig config = documents.config("jsonl", {std::string("tokenizer=") + v.kind, "model.vocab=" + std::to_string(v.asked)});
    const Corpus corpus = open_corpus(config);
    check_vocab(config, *corpus.tokenizer);
    CHECK(model_config(config, corpus.tokenizer.get()).vocab == v.size);
    const std::string line = format_message("model.vocab: {} instead of {}: this text has no more tokens for {}\n",
        {v.size, v.asked == 100'000 ? "100,000" : std::to_string(v.asked), v.kind});
    CHECK(describe_corpus(config, corpus) == (v.asked == v.size ? "" : line));
  }
  const auto refused = [&](const std::vector<std::string>& keys) {
    return test::bounded_error([&] {
      const TrainConfig config = documents.config("text", keys);
      check_vocab(config, *open_corpus(config).tokenizer);
    });
  };
  CHECK(refused({"tokenizer=byte", "model.vocab=300"}) ==
        "model.vocab: 300, but the byte tokenizer has 256 tokens; model.vocab=0 uses them all");
  CHECK(refused({"tokenizer=bpe", "model.vocab=200"}) ==
        "bpe training: the vocabulary size is 200, expected at least 256, the number of tokens before the first merge");
}

TEST_CASE("keys: the first condition that fails is the one that is named") {
  const auto refused = [](const std::vector<std::string>& keys) {
    return test::bounded_error([&] { load_config<TrainConfig>("", keys); });
  };
  const std::string reader = "a format without answers (text, jsonl, tsv or csv), and a family other than classifier";
  for (const char* cause : {"format=messages", "format=pairs", "model.family=classifier"})
    CHECK(refused({cause, "order=shuffled"}) == "command line: order: is read only with " + reader);
  CHECK(refused({"format=messages", "eos=document"}) ==
        "command line: eos: is read only with a format without a template: text, jsonl, tsv, csv or pairs");
}
