// What models write, in numbers (Subramanian et al. 2020, table 5): repeated n-grams, BLEU, the perplexity of what they write under a
// Kneser-Ney 4-gram model and under another trained model, and the time per sequence.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/analysis/report.h"
#include "apps/lab/analysis/text_runs.h"
#include "models/decoding/sampling.h"

namespace ricci::apps {

struct SamplesOptions {
  TextRunOptions text;
  int64_t prompts = 8;                  // places of the text that are continued
  int64_t prompt = 64;                  // tokens that each sequence begins with
  int64_t tokens = 256;                 // tokens that are written behind them
  int64_t completions = 3;              // of each prompt
  int64_t timed = 3;                    // sequences that are written alone, for the time
  int64_t training_tokens = 5'000'000;  // that the n-gram model learns from, at most
  std::string judge;                    // a run whose last checkpoint, at its own context, scores the samples too; empty: none
  Sampling sampling{.temperature = 0.7, .top_k = 40};
};

// Errors: those of open_text_runs, of the sampling, of KneserNey; a text too short for the prompts and what follows them.
Report analyse_samples(const SamplesOptions& options);

}  // namespace ricci::apps
