// Activation recomputation (Chen et al. 2016, "Training deep nets with sublinear memory cost") trades time for memory: the tape keeps only
// the inputs of f. The backward pass calls f again, with the random numbers of the first call, on a second tape.
//   y = recompute([&](const std::vector<Tensor>& x) { return block(x[0]); }, {x});
#pragma once
#include <array>
#include <functional>
#include <vector>

#include "autograd/arg.h"

namespace ricci {

// The result is bitwise identical to f(inputs), including dropout. Gradients reach the inputs and the parameters that f uses. Other tensors
// that f captures are constants; pass them as inputs if they need gradients. f is copied, and everything it refers to must live until the
// backward pass. The gradients are also bitwise identical, unless an input is used more than once inside f and also outside it. The terms
// of its gradient are then added in a different order. If the tape looks for NaN and infinity, it also finds them inside f, but the forward
// pass then needs as much memory as without recomputation. Errors in backward: an input was changed, f captures a tensor that is recorded
// on a tape, f returns different shapes than before.
Tensor recompute(const std::function<Tensor(const std::vector<Tensor>& inputs)>& f, const std::vector<Arg>& inputs);
std::array<Tensor, 2> recompute(  // for two results
    const std::function<std::array<Tensor, 2>(const std::vector<Tensor>& inputs)>& f, const std::vector<Arg>& inputs);

}  // namespace ricci
