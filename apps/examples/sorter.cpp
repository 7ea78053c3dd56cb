// Sequences of letters and the same letters in order, for the run file apps/configs/metaformer/sorter_metric.yaml.
//   sorter FOLDER [--symbols 3] [--length 11] [--rows 100000] [--held-out 1024] [--seed 1]
// FOLDER/train.jsonl and FOLDER/held_out.jsonl have lines such as {"prompt": "cab", "answer": "abc"}. No sequence is in both files:
// the held-out loss must not reward memorization.
#include <ricci/ricci.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

using namespace ricci;

// True for about one in eight sequences, for every seed.
bool is_held_out(const std::string& sequence) {
  uint64_t number = 0;
  for (const char letter : sequence) number = 26 * number + static_cast<uint64_t>(letter - 'a');
  return Philox{0, number}.bits(0) % 8 == 0;
}

void write_rows(const std::string& path, std::map<std::string, int64_t> options, bool held_out) {
  std::ofstream file(path);
  const Philox random{static_cast<uint64_t>(options["--seed"]), held_out};
  uint64_t drawn = 0;
  for (int64_t rows = options[held_out ? "--held-out" : "--rows"]; rows > 0;) {
    std::string sequence;
    for (int64_t i = 0; i < options["--length"]; ++i)
      sequence += static_cast<char>('a' + index_below(static_cast<uint64_t>(options["--symbols"]), random, drawn++));
    if (is_held_out(sequence) != held_out) continue;
    std::string in_order = sequence;
    std::sort(in_order.begin(), in_order.end());
    file << R"({"prompt": ")" << sequence << R"(", "answer": ")" << in_order << "\"}\n";
    --rows;
  }
  if (!file.flush()) fail("cannot write {}", {path});
}

int main(int argc, char** argv) {
  std::map<std::string, int64_t> options{{"--symbols", 3}, {"--length", 11}, {"--rows", 100'000}, {"--held-out", 1024}, {"--seed", 1}};
  try {
    if (argc < 2 || argc % 2 != 0) fail("usage: sorter FOLDER [--symbols 3] [--length 11] [--rows 100000] [--held-out 1024] [--seed 1]");
    for (int i = 2; i < argc; i += 2) {
      if (!options.contains(argv[i])) fail("{}: no such option", {argv[i]});
      options[argv[i]] = std::atoll(argv[i + 1]);
    }
    const int64_t symbols = options["--symbols"], length = options["--length"];
    if (symbols < 2 || symbols > 26) fail("--symbols: {}, expected 2 to 26", {symbols});
    if (std::pow(symbols, length) < 1024) fail("--length: {} allows fewer than 1024 sequences; increase --length or --symbols", {length});
    std::filesystem::create_directories(argv[1]);
    write_rows(argv[1] + std::string("/train.jsonl"), options, false);
    write_rows(argv[1] + std::string("/held_out.jsonl"), options, true);
  } catch (const std::exception& error) {
    std::cerr << "sorter: " << error.what() << "\n";
    return 1;
  }
}
