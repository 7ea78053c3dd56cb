#include "apps/run/training/step_notes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace ricci::apps {

constexpr int64_t kWatched = 100;      // steps
constexpr double kWorthTelling = 0.2;  // of their time

std::string StepNotes::exchange(double seconds, bool asked_to_end, int64_t peak_bytes) {
  const auto count = static_cast<size_t>(ranks_.count()), mine = static_cast<size_t>(ranks_.rank());
  std::vector<double> numbers(3 * count);  // of each rank: seconds waited, bytes, asked to end
  numbers[3 * mine] = ranks_.waited() - std::exchange(waited_before_, ranks_.waited());
  numbers[3 * mine + 1] = static_cast<double>(peak_bytes);
  numbers[3 * mine + 2] = asked_to_end;
  numbers = ranks_.sum(std::move(numbers));
  std::vector<double> waited(count);
  for (size_t r = 0; r < count; ++r) {
    waited[r] = numbers[3 * r];
    waited_[r] += waited[r];
    peak_bytes_ = std::max(peak_bytes_, static_cast<int64_t>(numbers[3 * r + 1]));
    asked_to_end_ |= numbers[3 * r + 2] > 0;
  }
  std::nth_element(waited.begin(), waited.begin() + count / 2, waited.end());
  medians_ += waited[count / 2];
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
  if (warned_ = waited_.size() > 1 && others > kWorthTelling * watched_; warned_)
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
