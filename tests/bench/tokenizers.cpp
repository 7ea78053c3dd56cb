// The speed at which texts become tokens, and vocabularies are trained. Each figure is the median of several rounds.
//   ricci-bench-tokenizers [text [tokenizer]]
// Without a text: the text of this project. Without a tokenizer file: the vocabulary of 8,000 merges that is trained here.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "apps/run/corpus/corpus.h"
#include "core/cpu/clock.h"
#include "core/files/file.h"
#include "data/tokenizers/kinds.h"
#include "data/tokenizers/training/training.h"

using namespace ricci;

namespace {

template <class F> double median_seconds(int rounds, const F& f) {
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    const double start = seconds_now();
    f();
    seconds.push_back(seconds_now() - start);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

void report(const char* name, double value, const char* unit) { std::printf("measure %s %.4g %s\n", name, value, unit); }

int measure(int argc, char** argv) {
  const BuiltInText own[] = {{"embedded", apps::embedded_corpus()}};
  const TextSource source = argc > 1 ? TextSource(argv[1]) : TextSource::of_paths({"embedded"}, own);
  const std::string text = argc > 1 ? read_text(argv[1]) : std::string(apps::embedded_corpus());
  const double megabytes = 1e-6 * static_cast<double>(text.size());

  std::shared_ptr<const Tokenizer> tokenizer;
  report("train_bpe_8000", median_seconds(3, [&] { tokenizer = train_bpe(source, {.vocab = 256 + 8000}); }), "s");
  report("train_wordpiece_8000", median_seconds(3, [&] { train_wordpiece(source, {.vocab = 8000, .lowercase = true}); }), "s");
  if (argc > 2) tokenizer = open_tokenizer(argv[2]);
  std::vector<int64_t> ids;
  report("encode_bpe", megabytes / median_seconds(7, [&] { ids = tokenizer->encode(text); }), "MB/s");
  report("decode_bpe", megabytes / median_seconds(7, [&] { tokenizer->decode(ids); }), "MB/s");
  const auto wordpiece = train_wordpiece(source, {.vocab = 8000, .lowercase = true});
  report("encode_wordpiece", megabytes / median_seconds(3, [&] { wordpiece->encode(text); }), "MB/s");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return measure(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ricci-bench-tokenizers: %s\n", error.what());
    return 1;
  }
}
