// The progress of a run: a bar on a terminal, else a line every 10 seconds.
//   step 1,240/2,000 [===============>        ]  62%  loss 1.672  152k tokens/s  0:41 left
#pragma once
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <string>

namespace ricci::apps {

struct ProgressOptions {
  int64_t steps = 0;  // in the run
  const char* unit = "step";
  int64_t first_step = 0;  // this process's first step; not 0 after a resume
  std::FILE* out = stdout;
  std::optional<bool> terminal = {};  // detected by default, like the width in columns
  std::optional<int> width = {};
  std::function<double()> seconds = {};  // the clock
};

class Progress {
 public:
  explicit Progress(const ProgressOptions& options);
  ~Progress() { erase(); }
  Progress(const Progress&) = delete;

  // `step` steps are done, and `tokens` tokens were read since construction. The note, such as "loss 1.672", follows the bar. The bar is
  // drawn at most 10 times a second. Speed and remaining time cover about the last 30 seconds, including pauses for evaluation.
  void update(int64_t step, int64_t tokens, const std::string& note = "");
  void line(const std::string& text);  // prints a line; the bar moves below the line

 private:
  struct Sample {
    double seconds;
    int64_t step, tokens;
  };
  std::string text(const std::string& note, int width) const;
  void write(const std::string& text) const;
  void erase();

  ProgressOptions options_;
  bool terminal_, drawn_ = false;
  double last_output_;
  std::deque<Sample> samples_;
};

}  // namespace ricci::apps
