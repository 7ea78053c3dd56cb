// One of several ranks in a dry run: it communicates with nobody.
#pragma once
#include <vector>

#include "core/memory/memory.h"
#include "cuda/ranks/ranks.h"

namespace ricci {

// What is sent and what arrives is held until it is waited for, as on a GPU. That is the most a rank holds: on the CPU MPI lets go of what
// has ended before.
class DryRank final : public Ranks, public MemoryHolder {
 public:
  DryRank(int rank, int count) {
    rank_ = rank;
    count_ = count;
    machines_.assign(static_cast<size_t>(count), "");
  }
  void all_to_all(const std::vector<Tensor>& to, const std::vector<Tensor>& from) override {
    for (const std::vector<Tensor>* list : {&to, &from}) kept_.insert(kept_.end(), list->begin(), list->end());
  }
  void wait() override { kept_.clear(); }
  void each_held(const Visit& visit) const override {
    for (const Tensor& t : kept_) visit(t, HeldFor::gradients);
  }

 private:
  std::vector<Tensor> kept_;
};

}  // namespace ricci
