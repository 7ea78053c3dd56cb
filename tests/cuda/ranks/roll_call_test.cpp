#include "cuda/ranks/roll_call.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "tests/cuda/ranks/fixed_ranks.h"

using namespace ricci;

namespace {

constexpr double kLimit = 300;

// The line of one of eight ranks; `waiting` have told so.
std::string line_of(int rank, const std::vector<std::pair<int, WaitNote>>& waiting) {
  const FixedRanks ranks(rank, 8);
  RollCall roll_call(ranks);
  for (const auto& [r, note] : waiting)
    if (r == rank) roll_call.told(note, 1000);
    else roll_call.heard(r, note);
  return roll_call.verdict(1000 + RollCall::kListen + 8 * RollCall::kNext, kLimit).value_or("nothing");
}

std::vector<std::pair<int, WaitNote>> all_but(const std::vector<int>& missing) {
  std::vector<std::pair<int, WaitNote>> waiting;
  for (int r = 0; r < 8; ++r)
    if (std::find(missing.begin(), missing.end(), r) == missing.end()) waiting.push_back({r, {true, 300, "step 812"}});
  return waiting;
}

}  // namespace

TEST_CASE("roll call: the ranks that do not answer are named") {
  CHECK(
      line_of(0, all_but({5})) == "rank 5 on node02 does not answer: the other 7 have waited for it for 300 s (rank_timeout) in step 812");
  CHECK(line_of(0, all_but({1, 5})) ==
        "rank 1 on node01, rank 5 on node02 do not answer: the other 6 have waited for them for 300 s (rank_timeout) in step 812");
  CHECK(line_of(0, all_but({1, 2, 3, 5, 6})) ==
        "rank 1 on node01, rank 2 on node01, rank 3 on node01 and 2 more do not answer: the other 3 have waited for them for 300 s "
        "(rank_timeout) in step 812");
  CHECK(line_of(7, {{7, {true, 300, ""}}}).ends_with("and 4 more do not answer: the other has waited for them for 300 s (rank_timeout)"));
}

TEST_CASE("roll call: all wait, and those that wait elsewhere are named") {
  auto waiting = all_but({});
  waiting[5].second = {true, 299, "step 811"};
  CHECK(line_of(0, waiting) == "all ranks wait, the longest 300 s: rank 5 on node02 in step 811, the others in step 812");
  CHECK(line_of(0, all_but({})) == "all ranks wait, the longest 300 s: all in step 812");
}

TEST_CASE("roll call: who tells, and when") {
  const FixedRanks ranks(2, 4);
  RollCall roll_call(ranks);
  CHECK_FALSE(roll_call.must_tell(299, kLimit));
  CHECK(roll_call.must_tell(300, kLimit));
  roll_call.heard(3, {true, 300, ""});
  CHECK(roll_call.must_tell(1, kLimit));  // another one asks
  roll_call.heard(3, {});
  CHECK_FALSE(roll_call.must_tell(1, kLimit));  // and takes its word back
  CHECK_FALSE(roll_call.verdict(1e9, kLimit));  // a rank that has not told says nothing
  roll_call.told({true, 300, ""}, 50);
  CHECK_FALSE(roll_call.must_tell(300, kLimit));  // once is enough
  CHECK_FALSE(roll_call.verdict(49 + RollCall::kListen, kLimit));
  CHECK(roll_call.verdict(50 + RollCall::kListen, kLimit));
  roll_call.heard(0, {true, 300, ""});  // the lower rank speaks first
  CHECK_FALSE(roll_call.verdict(50 + RollCall::kListen, kLimit));
  CHECK(roll_call.verdict(50 + RollCall::kListen + RollCall::kNext, kLimit));
  roll_call.took_back();
  CHECK_FALSE(roll_call.verdict(1e9, kLimit));
}
