// Answers about a text are found once, and again whenever they could be others.
#include "data/text/text_cache.h"

#include <doctest/doctest.h>

#include "core/files/file.h"
#include "data/text/split.h"
#include "data/tokenizers/char_tokenizer.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

// Asks twice; how often it was found, and the last answer.
struct Asked {
  int times = 0;
  std::string answer;
};
Asked ask(const std::string& path, const std::string& what, const std::string& cache, const std::string& value) {
  Asked asked;
  for (int i = 0; i < 2; ++i) asked.answer = remembered(TextSource(path), what, cache, [&] { return ++asked.times, value; });
  return asked;
}

}  // namespace

TEST_CASE("text cache: an answer is found once per text and question") {
  const ScratchFolder folder;
  const std::string a = folder.write("a", "text a"), b = folder.write("b", "text b"), cache = folder / "cache";
  for (const std::string& value : {std::string("one"), std::string(), std::string("with\nlines and \0 bytes", 22)}) {
    const std::string what = "length-" + std::to_string(value.size());
    CHECK(ask(a, what, cache, value).times == 1);
    CHECK(ask(a, what, cache, "never found").times == 0);
    CHECK(ask(a, what, cache, "never found").answer == value);
    CHECK(ask(b, what, cache, "b").answer == "b");
    CHECK(ask(a, what + "-other", cache, "c").answer == "c");
  }
}

TEST_CASE("text cache: a changed text, and a damaged answer, are asked again") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "text a"), cache = folder / "cache";
  CHECK(ask(path, "x", cache, "one").times == 1);
  folder.write("a", "text a, longer");
  CHECK(ask(path, "x", cache, "two").answer == "two");
  for (const auto& entry : std::filesystem::directory_iterator(cache)) {
    const std::string file = entry.path().string(), sound = read_file(file);
    for (size_t at = 0; at < sound.size(); ++at) {
      std::string damaged = sound;
      damaged[at] ^= 1;
      write_file_atomically(file, damaged);
      CHECK(ask(path, "x", cache, "two").times == 1);
      write_file_atomically(file, sound.substr(0, at));
      CHECK(ask(path, "x", cache, "two").times == 1);
    }
  }
  CHECK(ask(path, "x", "", "three").times == 2);                      // nowhere to remember it
  CHECK(ask(path, "x", folder / "a/no folder", "three").times == 2);  // nor there
}

TEST_CASE("text cache: cut and vocabulary are the same when they are remembered") {
  const ScratchFolder folder;
  const std::string text = mixed_text(5000, 3), path = folder.write("a", text), cache = folder / "cache";
  for (int i = 0; i < 2; ++i) {
    const Split found = split_by_characters(TextSource(path), 0.7), kept = split_by_characters(TextSource(path), 0.7, cache);
    CHECK(kept.train.content_hash() == found.train.content_hash());
    CHECK(kept.validation.content_hash() == found.validation.content_hash());
    CHECK(CharTokenizer::of_text(TextSource(path), cache).hash() == CharTokenizer::of_text(TextSource(path)).hash());
  }
}
