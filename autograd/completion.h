// The moment at which a gradient is complete. When backward has left the first op that uses a parameter, nothing can be added to its
// gradient any more. Tied tables are used twice, and a recomputation counts as a use of each parameter that its function reads.
#pragma once
#include <unordered_set>
#include <vector>

#include "autograd/tape.h"

namespace ricci {

// Called by backward, on its thread, when gradients are complete.
struct GradientListener {
  virtual ~GradientListener() = default;
  // Nothing will be added to p.grad any more. Every parameter that an op on the tape uses comes once, whether a gradient reached it or
  // not.
  virtual void completed(const Parameter& p) = 0;
};

// While it lives, it notes the parameters that ops of this thread read, without the frozen ones: for recompute, whose function runs
// unrecorded. What one inside another notes, the outer one notes too.
class ParametersRead {
 public:
  ParametersRead();
  ~ParametersRead();
  ParametersRead(const ParametersRead&) = delete;
  ParametersRead& operator=(const ParametersRead&) = delete;
  static void note(const Parameter& p);  // for Arg
  const std::vector<const Parameter*>& all() const { return all_; }

 private:
  void add(const Parameter& p);
  std::vector<const Parameter*> all_;
  ParametersRead* outer_;
};

// Calls the listener of one backward. Without a listener it does nothing, and the listener of a backward around it stays in force.
class Completion {
 public:
  Completion(const Tape& tape, GradientListener* listener);
  ~Completion();
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  void left(size_t node);                    // backward has left the node of this number
  static bool has_told(const Parameter* p);  // on this thread

 private:
  struct FirstUse {
    size_t node;
    const Parameter* parameter;
  };
  GradientListener* listener_;
  std::vector<FirstUse> uses_;  // rising; a use is removed when the listener has been called for it
  std::unordered_set<const Parameter*> told_;
  Completion* outer_;
};

}  // namespace ricci
