// The progress of a run: a bar on a terminal, lines otherwise.
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
  int64_t steps = 0;          // in the whole run
  const char* unit = "step";  // what is counted
  int64_t first_step = 0;     // where this process starts, after a resume
  std::FILE* out = stdout;
  // The rest is found out unless given.
  std::optional<bool> terminal = {};
  std::optional<int> width = {};         // columns
  std::function<double()> seconds = {};  // a clock
};

class Progress {
 public:
  explicit Progress(const ProgressOptions& options);
  ~Progress();  // erases the bar
  Progress(const Progress&) = delete;

  // `step` steps are done, and `tokens` tokens were read since construction; the note, such as "loss 1.672", follows the bar. On a terminal
  // the bar is drawn at most 10 times a second, as wide as the terminal is then; otherwise a line is written every 10 seconds. Speed and
  // time left come from about the last 30 seconds, pauses for evaluation included.
  void update(int64_t step, int64_t tokens, const std::string& note = "");
  // A whole line of output; the bar moves below it.
  void line(const std::string& text);

 private:
  struct Sample {
    double seconds;
    int64_t step, tokens;
  };
  std::string text(const std::string& note, int width) const;
  int width() const;
  void write(const std::string& text) const;
  void erase();

  ProgressOptions options_;
  bool terminal_;
  bool drawn_ = false;
  double last_output_;
  std::deque<Sample> samples_;
};

// "1,234,567"; "950", "15.2k", "3.1M"; "0:41", "2:03:10"
std::string with_commas(int64_t number);
std::string counted(int64_t number, const std::string& noun);  // 1 shard, 2,000 shards
std::string short_number(double number);
std::string clock_time(double seconds);

}  // namespace ricci::apps
