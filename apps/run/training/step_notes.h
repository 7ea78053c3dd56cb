// Numbers that ranks exchange after each step of a training: if they were asked to end, the memory they hold, the time they waited.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cuda/ranks/ranks.h"

namespace ricci::apps {

class StepNotes {
 public:
  explicit StepNotes(Ranks& ranks) : ranks_(ranks), waited_before_(ranks.waited()), waited_(static_cast<size_t>(ranks.count())) {}

  // The numbers of this rank, before a step: it was asked to end, bytes, and the seconds it waited in the step before.
  std::vector<double> numbers(bool asked_to_end, int64_t peak_bytes);
  // After a step of this duration: the numbers of all ranks, in their order (TrainStep::from_ranks). Returns a line once all have waited
  // for the same rank for more than a fifth of 100 steps; else an empty one.
  std::string take(const std::vector<double>& numbers, double seconds);

  bool asked_to_end() const { return asked_to_end_; }  // any rank
  int64_t peak_bytes() const { return peak_bytes_; }   // the largest
  // Milliseconds of a step in which a rank waits for others: the (lower) median over the ranks, the mean over the steps since the call
  // before. Returns nullopt with one rank alone, or without a step.
  std::optional<double> exchange_ms();

 private:
  std::string slowest(double seconds);

  Ranks& ranks_;
  double waited_before_;       // Ranks::waited, when the step began
  double waited_in_step_ = 0;  // in the step before
  bool asked_to_end_ = false, warned_ = false;
  int64_t peak_bytes_ = 0;
  double medians_ = 0;  // seconds, since the record before
  int64_t steps_ = 0;
  std::vector<double> waited_;  // by each rank in the steps that are watched for a slow one, seconds
  double watched_ = 0;          // seconds that those steps took
  int64_t watched_steps_ = 0;
};

}  // namespace ricci::apps
