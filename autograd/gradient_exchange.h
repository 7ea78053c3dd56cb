// The sums of a step's gradients: over the leaves of one rank, and over all ranks.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "autograd/completion.h"
#include "autograd/gradient_layout.h"
#include "core/memory/memory.h"
#include "cuda/ranks/ranks.h"

namespace ricci {

// Adds the gradients of a rank's leaves along the tree of a step. Parameter::grad holds the gradients of a leaf when it ends. The sums of
// earlier leaves are kept here: one for each open node of the tree, at most log2 of the leaves. Sums have the tape's dtype: f32, or f64
// for f64 parameters.
class LeafSums final : public MemoryHolder {
 public:
  // `own`: the leaves of this rank, of `all` in the step.
  LeafSums(std::vector<Parameter*> trained, int64_t all, Range own);

  size_t parameters() const { return trained_.size(); }
  // Before a step.
  void begin();
  // After each leaf but the last: takes its gradients away. Error: a parameter has a gradient in one leaf and none in another.
  void end_leaf();
  // In or after the last backward of the last leaf, for each parameter, when nothing more is added to its gradient: adds what waits for it.
  // Parameter::grad is then the sum of the last subtree. Errors: as for end_leaf.
  void finish(size_t parameter);
  // The sums of the subtrees before the last: their number, and one of them for a parameter, handed over after the last leaf has begun. A
  // parameter without a gradient has an empty tensor.
  size_t earlier() const;
  Tensor take_earlier(size_t subtree, size_t parameter);
  void each_held(const Visit& visit) const override;

 private:
  struct Node {
    Range leaves;
    std::vector<Tensor> sums;  // per parameter
  };
  void add(Tensor& sum, const Range& its_leaves, const Tensor& more, const Range& leaves, size_t parameter) const;

  std::vector<Parameter*> trained_;
  int64_t all_;
  Range own_;
  int64_t leaf_ = 0;         // that is computed
  std::vector<Node> nodes_;  // whose leaves are done, in order
};

// The gradients of all ranks: each leaves for its owners in its bucket while backward runs, an owner adds what arrives along the tree, and
// after the update gives the values back. Two buckets at most are on their way, so that a rank with one leaf holds of the gradient what
// is not sent yet, two buckets and its share. Gradients are sent from where they are.
//   exchange.begin();                              then the leaves, each but the last followed by leaves().end_leaf()
//   tape.backward(loss, weight, &exchange);        a bucket is sent when it is full and those before it have gone
//   const auto gradients = exchange.finish();      of the own blocks
//   exchange.gather_values();                      after the update of these
class GradientExchange final : public GradientListener, public MemoryHolder {
 public:
  // `leaves`: of each rank, in order, together all of the step. bucket_bytes: as for GradientLayout.
  GradientExchange(std::vector<Parameter*> trained, const std::vector<Range>& leaves, Ranks& ranks, int64_t bucket_bytes = 0);

  const GradientLayout& layout() const { return layout_; }
  const std::vector<Parameter*>& parameters() const { return trained_; }
  LeafSums& leaves() { return leaves_; }

  void begin();  // before a step
  void completed(const Parameter& p) override;

  // After the last backward: sends what is left, waits, and adds. Returns the gradient of each of layout().blocks_of(rank), flat; empty
  // where the parameter got none here.
  std::vector<Tensor> finish();
  // A flag per parameter that got a gradient in this step here, as a text of 0 and 1. It must be the same on all ranks.
  const std::string& reached() const { return reached_; }

  // Sends the values of the own blocks to all and takes theirs.
  void gather_values();
  void each_held(const Visit& visit) const override;

 private:
  using Tensors = Ranks::Tensors;
  struct Sum {
    Range leaves;         // a subtree, whose gradients are added already
    Tensors parts;        // as in shares_[bucket][rank]
    bool is_own = false;  // views of this rank's gradients
  };
  void take(size_t parameter);
  void send(size_t bucket);
  Tensors own_parts(size_t bucket, size_t subtree, size_t owner) const;
  Tensors room_for_parts(size_t bucket) const;
  void add_arrived(size_t end);
  Tensors sum_of(size_t bucket);
  Tensor packed_values(size_t bucket) const;
  void unpack_values(size_t bucket, const Tensor& values) const;

  std::vector<Parameter*> trained_;
  Ranks& ranks_;
  size_t rank_;
  int64_t all_leaves_;
  std::vector<std::vector<Range>> subtrees_;  // per rank
  size_t most_subtrees_ = 0;
  GradientLayout layout_;
  LeafSums leaves_;
  std::unordered_map<const Parameter*, size_t> number_of_;
  std::vector<std::vector<std::vector<GradientLayout::PlacedBlock>>> shares_;  // [bucket][owner]
  std::vector<std::vector<size_t>> parameters_in_;                             // [bucket]
  std::vector<std::vector<size_t>> buckets_of_;                                // [parameter], rising

  // State of the current step:
  std::string reached_;                    // 0, 1; - where that is not known yet
  std::vector<size_t> missing_;            // parameters of each bucket
  size_t next_ = 0;                        // bucket to be sent
  std::vector<Tensors> gradients_;         // [own subtree][parameter], until they are sent
  std::vector<std::vector<Sum>> arrived_;  // [bucket], in the order of leaves, until they are added
  std::vector<Tensors> sums_;              // [bucket], of the own share
};

}  // namespace ricci
