// The account that a file gives of its training, and the keys that are compared.
#include "apps/run/folder/provenance.h"

#include <doctest/doctest.h>

#include "apps/run/config/config.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

TrainConfig config_of(const std::vector<std::string>& overrides) { return load_config<TrainConfig>("", overrides); }

// The error, or the warning, of comparing a file of such metadata.
std::string compared(const Metadata& metadata, const std::vector<std::string>& now, const Tokenizer& tokenizer, Compare what) {
  const ScratchFolder folder;
  save_safetensors(folder / "a", {}, metadata);
  std::string warning;
  const std::string error = error_of([&] {
    check_provenance(SafetensorsFile(folder / "a"), config_of(now), &tokenizer, what, [&](const std::string& line) { warning = line; });
  });
  std::string said = warning.empty() ? error : "warning: " + warning;
  const size_t path = said.find(folder / "a");
  return path == said.npos ? said : said.replace(path, (folder / "a").size(), "FILE");
}

}  // namespace

TEST_CASE("provenance: the keys that shape the model, and the tokenizer") {
  const CharTokenizer tokenizer("abc");
  const Metadata told = provenance(config_of({"seed=1"}), &tokenizer, Compare::model);
  const auto compare = [&](const std::vector<std::string>& now) { return compared(told, now, tokenizer, Compare::model); };
  CHECK(compare({"seed=1"}) == "no error");
  CHECK(compare({"seed=2", "lr=0.5", "batch=3", "steps=9", "data=other"}) == "no error");
  CHECK(compare({"model.heads=2"}) == "FILE: it was trained with model.heads: 4, not 2");
  CHECK(compare({"model.layers=2"}) == "FILE: it was trained with model.layers: 4, not 2");
  CHECK(compare({"context=8"}) == "FILE: it was trained with context: 64, not 8");
  CHECK(compare({"model.vocab=3"}) == "no error");  // 0: the tokenizer's
  CHECK(compared(told, {}, CharTokenizer("acb"), Compare::model) == "FILE: it was trained with another tokenizer than the one beside it");
  CHECK(contains(compared(told, {}, ByteTokenizer(), Compare::model), "model.vocab: 3, not 256"));
}

TEST_CASE("provenance: every key that may not change while a run goes on") {
  const ByteTokenizer tokenizer;
  const Metadata told = provenance(config_of({"seed=7", "data=a.txt"}), &tokenizer, Compare::training);
  const auto compare = [&](const std::vector<std::string>& now, Compare what = Compare::training) {
    return compared(told, now, tokenizer, what);
  };
  CHECK(compare({"seed=7", "data=a.txt"}) == "no error");
  CHECK(compare({"seed=7", "data=a.txt", "steps=9", "threads=3", "name=other", "eval_every=2", "sample.seed=4"}) == "no error");
  CHECK(compare({"seed=8", "data=a.txt"}) == "FILE: it was trained with seed: 7, not 8");
  CHECK(compare({"seed=7", "data=b.txt"}) == "no error");  // texts are compared by their contents
  CHECK(compare({"seed=7", "data=a.txt", "lr=0.5"}) == "FILE: it was trained with lr: 0.001, not 0.5");
  CHECK(compare({"seed=8", "lr=0.5"}, Compare::model) == "no error");
  CHECK(compare({"model.d=64"}, Compare::model) == "FILE: it was trained with model.d: 128, not 64");
}

TEST_CASE("provenance: what other versions tell, and what is no text") {
  const ByteTokenizer tokenizer;
  CHECK(compared({{"format", "ricci"}}, {}, tokenizer, Compare::model) ==
        "warning: FILE: it does not name what it was trained with; the config and the tokenizer beside it are believed");
  Metadata told = provenance(config_of({}), &tokenizer, Compare::model);
  told["config"] += "model.of_the_future: 3\nno key\n";
  CHECK(compared(told, {}, tokenizer, Compare::model) == "no error");
  const Metadata odd = provenance(config_of({"data=\"caf\\xe9\\n\\\"b\""}), &tokenizer, Compare::training);
  CHECK(compared(odd, {"data=\"caf\\xe9\\n\\\"b\""}, tokenizer, Compare::training) == "no error");
  TrainConfig bytes = config_of({});
  bytes.data = {"caf\xe9.txt"};  // no UTF-8, as paths may be
  const ScratchFolder folder;
  CHECK_NOTHROW(save_safetensors(folder / "a", {}, provenance(bytes, &tokenizer, Compare::training)));
}
