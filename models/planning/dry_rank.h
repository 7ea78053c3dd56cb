// One of several ranks in a dry run, without communication.
#pragma once
#include <deque>
#include <vector>

#include "core/memory/memory.h"
#include "cuda/ranks/ranks.h"

namespace ricci {

// All that is sent and received is held until it is waited for. That is the most a rank holds.
class DryRank final : public Ranks, public MemoryHolder {
 public:
  DryRank(int rank, int count) {
    rank_ = rank;
    count_ = count;
    machines_.assign(static_cast<size_t>(count), "");
  }
  void all_to_all(const std::vector<Tensors>& outgoing, const std::vector<Tensors>& incoming) override {
    Tensors& kept = kept_.emplace_back();
    for (const std::vector<Tensors>* lists : {&outgoing, &incoming})
      for (const Tensors& list : *lists) kept.insert(kept.end(), list.begin(), list.end());
  }
  void wait_but_for(int64_t last) override {
    while (static_cast<int64_t>(kept_.size()) > last) kept_.pop_front();
  }
  void each_held(const Visit& visit) const override {
    for (const Tensors& exchange : kept_)
      for (const Tensor& t : exchange) visit(t, HeldFor::gradients);
  }

 private:
  std::deque<Tensors> kept_;  // per exchange
};

}  // namespace ricci
