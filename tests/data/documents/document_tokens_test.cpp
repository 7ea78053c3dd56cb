// Documents in memory: texts of any length, labels, hashes, and what cannot be read.
#include "data/documents/document_tokens.h"

#include <doctest/doctest.h>

#include "core/cpu/parallel.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/kinds.h"
#include "data/tokens/joined_tokens.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

constexpr int kDocuments = 300, kClasses = 4;

std::string text_of(int i) { return std::string(static_cast<size_t>(i == 7 ? 700'000 : i % 50), static_cast<char>('a' + i % 26)); }

std::string tsv() {
  std::string text;
  for (int i = 0; i < kDocuments; ++i) text += std::to_string(i % kClasses) + "\t" + text_of(i) + "\n";
  return text;
}

DocumentTokens small(const std::string& text, const std::string& name = "a") {
  const TextSource source = TextSource::of_paths({name}, std::array{BuiltInText{name, text}});
  const auto documents = read_documents(source, {.format = DocumentFormat::tsv, .label_field = "1", .classes = kClasses});
  return DocumentTokens(name, documents, ByteTokenizer(), kClasses);
}

}  // namespace

TEST_CASE("every document that has tokens is there, whole and with its label") {
  const int before = thread_count();
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    const DocumentTokens tokens = small(tsv());
    int64_t index = 0, end = 0;
    for (int i = 0; i < kDocuments; ++i) {
      const std::string expected = text_of(i);
      if (expected.empty()) continue;
      const TokenSpan span = tokens.document(0, index);
      CHECK(span.first == end);
      end = span.end;
      std::vector<int64_t> ids(static_cast<size_t>(span.size()));
      tokens.read(span.first, ids);
      CHECK(ByteTokenizer().decode(ids) == expected);
      CHECK(tokens.label(0, index++) == i % kClasses);
    }
    CHECK(tokens.documents(0) == index);
    CHECK(tokens.size() == end);
    CHECK(tokens.classes() == kClasses);
  }
  set_thread_count(before);
}

TEST_CASE("the hash is another when a token, a boundary or a label is") {
  const uint64_t hash = small("0\tab\n1\tcd\n").hash();
  CHECK(small("0\tab\n1\tcd\n", "another_name").hash() == hash);
  for (const char* other : {"0\tab\n1\tce\n", "0\ta\n1\tbcd\n", "0\tab\n2\tcd\n"}) CHECK(small(other).hash() != hash);
}

TEST_CASE("joined documents keep their labels, and have none where one source has none") {
  const Tokens a = small("0\tab\n1\tcd\n", "a"), b = small("3\tx\n", "b");
  const Tokens both = join({a, b});
  CHECK(both.classes() == kClasses);
  CHECK(both.label(0, 1) == 1);
  CHECK(both.label(1, 0) == 3);
  const std::vector<Document> unlabelled{{"x", -1, "c:1"}};
  CHECK(join({a, DocumentTokens("c", unlabelled, ByteTokenizer(), 0)}).classes() == 0);
}

TEST_CASE("<eos> ends every document") {
  const std::vector<Document> documents{{"b a", 0, "d:1"}, {"a", 1, "d:2"}};
  const TextSource text = TextSource::of_paths({"t"}, std::array{BuiltInText{"t", "a b"}});
  const auto tokenizer = train_tokenizer(*find_tokenizer_kind("word"), text, {}, {.behind = Eos::document});
  const DocumentTokens tokens("d", documents, *tokenizer, 2);
  CHECK(tokens.document(0, 0).size() == 3);
  CHECK(tokens.document(0, 1).size() == 2);
}

TEST_CASE("what cannot be read") {
  const std::vector<Document> documents{{"ab", 0, "d.tsv:1"}, {"xyz", 1, "d.tsv:2"}}, none{{"", 0, "d.tsv:1"}};
  CHECK(contains(error_of([&] { DocumentTokens("d", documents, CharTokenizer("abx"), 2); }), "d.tsv:2: "));
  CHECK(error_of([&] { DocumentTokens("d", none, ByteTokenizer(), 2); }) == "d: the documents hold no tokens");
  CHECK(error_of([] { small("0\tab\n9\tcd\n"); }) == "a:2: label 9 is out of range: 4 classes have 0 to 3");
}
