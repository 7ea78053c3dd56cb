// Activation recomputation (Chen et al. 2016, "Training deep nets with sublinear memory cost"): of all that f computes, the
// tape keeps the inputs alone; backward calls f once more, on a tape of its own, with the random numbers of the first call.
//   y = recompute([&](const std::vector<Tensor>& x) { return block(x[0]); }, {x});
#pragma once
#include <array>
#include <functional>
#include <vector>

#include "autograd/arg.h"

namespace ricci {

// f(inputs), bit for bit, dropout included. Gradients reach the inputs and the parameters that f uses. Other tensors that f
// captures are constants; one that is recorded on a tape is an error, since its gradient would be lost: pass it as an input, or
// detached(). f is copied, and what it refers to must live until the backward.
// The gradients have the same bits, too, except when an input is used several times inside f and also outside of it: its
// terms are then added in another order.
// On a tape that looks for NaN and infinity, those inside f are found too, in its forward and its backward. The forward then needs the
// memory that it needs without recomputation.
// Errors, in backward: an input was changed; f captures a recorded tensor; f gives results of other shapes than before.
Tensor recompute(const std::function<Tensor(const std::vector<Tensor>& inputs)>& f, const std::vector<Arg>& inputs);

// The same for two results.
std::array<Tensor, 2> recompute(
    const std::function<std::array<Tensor, 2>(const std::vector<Tensor>& inputs)>& f, const std::vector<Arg>& inputs);

}  // namespace ricci
