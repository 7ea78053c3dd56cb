// Tokens per second of the shuffled stream without training, on one thread as in training: batches of 16 sequences, for 5 s.
//   ricci-bench-loader FOLDER [CONTEXT]
// FOLDER: prepared shards. Compare with the tokens_per_s of a training run.
#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "data/feeds/sequence_stream.h"
#include "data/shards/tokens.h"
#include "tests/bench/measured_steps.h"

using namespace ricci;

namespace {

void measure(const char* folder, int64_t context) {
  constexpr int64_t kSequences = 16;
  constexpr double kSeconds = 5;
  SequenceStream stream({Tokens::open(folder, *tokenizer_of_shards(folder))}, {.context = context, .batch = kSequences, .seed = 1});
  stream.next();  // the first shard is compared with its checksum
  int64_t tokens = 0;
  const double start = seconds_now();
  double now = start;
  for (; now < start + kSeconds; now = seconds_now()) tokens += stream.next().scored;
  std::printf("context %lld: %.1f million tokens/s\n", static_cast<long long>(context), 1e-6 * static_cast<double>(tokens) / (now - start));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return std::fprintf(stderr, "usage: ricci-bench-loader FOLDER [CONTEXT]\n"), 2;
  try {
    measure(argv[1], argc > 2 ? std::atoll(argv[2]) : 128);
  } catch (const Error& error) {
    return std::fprintf(stderr, "ricci-bench-loader: %s\n", error.what()), 1;
  }
  return 0;
}
