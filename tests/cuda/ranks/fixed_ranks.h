// Ranks for tests of one process: a rank among so many on machines of four, which carries nothing.
#pragma once
#include "cuda/ranks/ranks.h"

class FixedRanks : public ricci::Ranks {
 public:
  FixedRanks(int rank, int count) {
    rank_ = rank;
    count_ = count;
    local_ = rank % 4;
    machines_.clear();
    for (int r = 0; r < count; ++r) machines_.push_back("node0" + std::to_string(1 + r / 4));
  }
};
