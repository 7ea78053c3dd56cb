#include "cuda/ranks/roll_call.h"

#include <unistd.h>

#include <algorithm>

#include "core/cpu/clock.h"
#include "core/error.h"

namespace ricci {

namespace {

constexpr useconds_t kNap = 100;  // microseconds between two tests: MPI's own waiting spins
constexpr int kSpins = 20;        // tests before the first nap
constexpr double kLook = 0.1;     // seconds between two looks

}  // namespace

double wait_until(const std::function<bool()>& done, const std::function<void(double)>& look) {
  const double begun = seconds_now();
  double looked = begun, waited = 0;
  for (int64_t tests = 0; !done(); ++tests) {
    if (tests < kSpins) continue;
    ::usleep(kNap);
    const double now = seconds_now();
    if (now < looked + kLook) continue;
    waited += std::min(now - looked, 1.0);
    looked = now;
    look(waited);
  }
  return seconds_now() - begun;
}

bool RollCall::must_tell(double waited, double limit) const {
  if (told_at_) return false;
  return waited >= limit || std::any_of(notes_.begin(), notes_.end(), [](const WaitNote& note) { return note.waits; });
}

void RollCall::told(const WaitNote& note, double now) {
  heard(ranks_.rank(), note);
  told_at_ = now;
}

void RollCall::took_back() {
  heard(ranks_.rank(), {});
  told_at_.reset();
}

std::optional<std::string> RollCall::verdict(double now, double limit) const {
  if (!told_at_) return {};
  const auto before = std::count_if(notes_.begin(), notes_.begin() + ranks_.rank(), [](const WaitNote& note) { return note.waits; });
  if (now < *told_at_ + kListen + kNext * static_cast<double>(before)) return {};
  return line(limit);
}

std::string RollCall::line(double limit) const {
  std::vector<int> missing;
  for (int r = 0; r < ranks_.count(); ++r)
    if (!notes_[static_cast<size_t>(r)].waits) missing.push_back(r);
  return missing.empty() ? line_of_all() : line_of_missing(missing, limit);
}

namespace {

std::string place_suffix(const std::string& where) { return where.empty() ? "" : " in " + where; }

}  // namespace

// rank 5 on node02 does not answer: the other 7 have waited for it for 300 s (rank_timeout) in step 812
std::string RollCall::line_of_missing(const std::vector<int>& missing, double limit) const {
  constexpr size_t kNamed = 3;
  std::string names;
  for (size_t i = 0; i < std::min(missing.size(), kNamed); ++i) names += (i ? ", " : "") + ranks_.name(missing[i]);
  if (missing.size() > kNamed) names += format_message(" and {} more", {missing.size() - kNamed});
  const bool one = missing.size() == 1;
  const size_t others = static_cast<size_t>(ranks_.count()) - missing.size();
  const std::string waiting = others == 1 ? "the other has" : format_message("the other {} have", {others});
  return format_message("{} {} not answer: {} waited for {} for {:.0f} s (rank_timeout){}",
      {names, one ? "does" : "do", waiting, one ? "it" : "them", limit, place_suffix(notes_[static_cast<size_t>(ranks_.rank())].where)});
}

// all ranks wait, the longest 300 s: rank 5 on node02 in step 811, the others in step 812
std::string RollCall::line_of_all() const {
  const auto longer = [](const WaitNote& a, const WaitNote& b) { return a.seconds < b.seconds; };
  const double longest = std::max_element(notes_.begin(), notes_.end(), longer)->seconds;
  // Where most are; the ranks that are elsewhere are named.
  std::string most;
  const auto there = [&](const std::string& where) {
    return std::count_if(notes_.begin(), notes_.end(), [&](const WaitNote& note) { return note.where == where; });
  };
  for (const WaitNote& note : notes_)
    if (most.empty() || there(note.where) > there(most)) most = note.where;
  std::string elsewhere;
  for (int r = 0; r < ranks_.count(); ++r) {
    const std::string& where = notes_[static_cast<size_t>(r)].where;
    if (where != most) elsewhere += ranks_.name(r) + place_suffix(where) + ", ";
  }
  const std::string rest = elsewhere.empty() ? "all" : "the others";
  return format_message("all ranks wait, the longest {:.0f} s: {}{}{}", {longest, elsewhere, rest, place_suffix(most)});
}

}  // namespace ricci
