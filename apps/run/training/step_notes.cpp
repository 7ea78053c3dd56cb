#include "apps/run/training/step_notes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace ricci::apps {

constexpr int64_t kWatched = 100;      // steps
constexpr double kWorthTelling = 0.2;  // share of their time

std::vector<double> StepNotes::numbers(bool asked_to_end, int64_t peak_bytes) {
  waited_before_ = ranks_.waited();
  return {asked_to_end ? 1.0 : 0.0, static_cast<double>(peak_bytes), waited_in_step_};
}

std::string StepNotes::take(const std::vector<double>& numbers, double seconds) {
  waited_in_step_ = ranks_.waited() - waited_before_;
  std::vector<double> waited;
  for (size_t i = 0; i + 2 < numbers.size(); i += 3) {
    asked_to_end_ |= numbers[i] > 0;
    peak_bytes_ = std::max(peak_bytes_, static_cast<int64_t>(numbers[i + 1]));
    waited.push_back(numbers[i + 2]);
    waited_[i / 3] += numbers[i + 2];
  }
  if (waited.size() < 2) return "";
  const auto middle = waited.begin() + static_cast<std::ptrdiff_t>((waited.size() - 1) / 2);
  std::nth_element(waited.begin(), middle, waited.end());
  medians_ += *middle;
  ++steps_;
  return slowest(seconds);
}

std::string StepNotes::slowest(double seconds) {
  watched_ += seconds;
  if (++watched_steps_ < kWatched || warned_) return "";
  const auto least = std::min_element(waited_.begin(), waited_.end());
  const double others = std::accumulate(waited_.begin(), waited_.end(), -*least) / static_cast<double>(waited_.size() - 1) - *least;
  const int rank = static_cast<int>(least - waited_.begin());
  std::string line;
  warned_ = others > kWorthTelling * watched_;
  if (warned_)
    line = format_message("warning: {} is the slowest: the others wait {:.0f} of {:.0f} ms for it",
        {ranks_.name(rank), 1e3 * others / kWatched, 1e3 * watched_ / kWatched});
  std::fill(waited_.begin(), waited_.end(), 0);
  watched_ = 0;
  watched_steps_ = 0;
  return line;
}

std::optional<double> StepNotes::exchange_ms() {
  const int64_t steps = std::exchange(steps_, 0);
  const double medians = std::exchange(medians_, 0);
  return ranks_.count() == 1 || steps == 0 ? std::nullopt : std::optional(1e3 * medians / static_cast<double>(steps));
}

}  // namespace ricci::apps
