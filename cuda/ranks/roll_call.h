// The ranks waited for. No library of messages notices that a process is stopped or stuck. A rank that has waited for `rank_timeout`
// reports so to all others. Every other rank that waits, or comes to wait, reports it as well, and a rank that does not is the one waited
// for. Five seconds later the lowest rank that reported prints its findings and ends all. A rank whose wait ends after all takes its
// report back.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cuda/ranks/ranks.h"

namespace ricci {

// A message of one rank: it waits, since when and where; or it does not wait any more.
struct WaitNote {
  bool waits = false;
  double seconds = 0;
  std::string where;  // "step 812"
};

// Waits until done(), with naps between two tests, and calls look(seconds) every tenth of a second, with the time so far but without the
// time for which this process was stopped. Returns the seconds it took.
double wait_until(const std::function<bool()>& done, const std::function<void(double)>& look);

class RollCall {
 public:
  static constexpr double kListen = 5, kNext = 3;  // seconds: until the first prints; until the next one does, should the first be stuck

  explicit RollCall(const Ranks& ranks) : ranks_(ranks), notes_(static_cast<size_t>(ranks.count())) {}

  void heard(int rank, const WaitNote& note) { notes_[static_cast<size_t>(rank)] = note; }
  // True if this rank has to report to the others now that it waits. `limit` is the longest wait without asking, in seconds.
  bool must_tell(double waited, double limit) const;
  // This rank has reported its wait, at that time; it has taken the report back.
  void told(const WaitNote& note, double now);
  void took_back();
  bool has_told() const { return told_at_.has_value(); }
  // The line that ends all ranks, if this rank has to print it. `limit` is for the line.
  std::optional<std::string> verdict(double now, double limit) const;

 private:
  std::string line(double limit) const;
  std::string line_of_missing(const std::vector<int>& missing, double limit) const;
  std::string line_of_all() const;

  const Ranks& ranks_;
  std::vector<WaitNote> notes_;  // the newest of each rank
  std::optional<double> told_at_;
};

}  // namespace ricci
