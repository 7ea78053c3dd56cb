// Gives every seed to its fuzz target, each in a separate process with limited time and memory: for compilers without libFuzzer, and for
// findings that must not return. Here each target has a different name than LLVMFuzzerTestOneInput (CMakeLists.txt).
//   ricci-replay FOLDER     with a folder of seeds for each target
#include <map>

#include "core/files/file.h"
#include "tests/bounded.h"

using Target = int(const uint8_t*, size_t);
extern "C" {
Target fuzz_archives, fuzz_config, fuzz_csv, fuzz_dirt, fuzz_hub, fuzz_jsonl, fuzz_messages, fuzz_metrics, fuzz_options, fuzz_pieces,
    fuzz_safetensors, fuzz_tokenizer, fuzz_tsv;
}

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]), 2;
  const std::map<std::string, Target*> targets = {{"archives", fuzz_archives}, {"config", fuzz_config}, {"csv", fuzz_csv},
      {"dirt", fuzz_dirt}, {"hub", fuzz_hub}, {"jsonl", fuzz_jsonl}, {"messages", fuzz_messages}, {"metrics", fuzz_metrics},
      {"options", fuzz_options}, {"pieces", fuzz_pieces}, {"safetensors", fuzz_safetensors}, {"tokenizer", fuzz_tokenizer},
      {"tsv", fuzz_tsv}};
  int failed = 0, inputs = 0;
  for (const auto& [name, target] : targets) {
    const std::string folder = std::string(argv[1]) + "/" + name;
    for (const std::string& seed : ricci::names_in(folder)) {
      const std::string bytes = ricci::read_text(folder + "/" + seed);
      const std::string fault =
          test::bounded_error([&, run = target] { run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()); });
      if (fault != "no error") std::printf("FAILED  %s/%s: %s\n", name.c_str(), seed.c_str(), fault.c_str()), ++failed;
      ++inputs;
    }
  }
  std::printf("%d inputs, %d failed\n", inputs, failed);
  return failed > 0 || inputs == 0;
}
