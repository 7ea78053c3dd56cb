#pragma once
#include "autograd/arg.h"

namespace ricci {

// How well cell j of `size` tokens says which tokens are in the next one, in whatever order (a bag of words): the mean over cells
// of the cross-entropy against the uniform distribution over those tokens, in nats, as an f64 scalar:
//   loss = mean over (b, j) of -1/size sum over the tokens w of cell j + 1 of log softmax(logits_bj)[w]
// logits_bmv has the m = c / size whole cells of ids_bc. A cell counts when the next one is whole too: of c positions, and where
// lengths_b are given of the first lengths_b[b] of them. No counted cell: 0.
// Errors: a size below 1, another number of cells, an id outside the vocabulary (on the cpu; on other devices the loss is NaN
// then), a length outside 0 .. c (not on cuda).
Tensor bag_cross_entropy(const Arg& logits_bmv, const Arg& ids_bc, int64_t size, const Arg& lengths_b = Tensor());

}  // namespace ricci
