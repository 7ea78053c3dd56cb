#pragma once
#include <string_view>

#include "autograd/arg.h"

namespace ricci {

// Multiplies two tensors and sums over every index that is not in the result, as the formula says:
//   contract("bcnk,bCnk->bncC", q_bcnk, k_bCnk)      scores of attention
//   contract("mk,kn->mn", a_mk, b_kn)                a matrix product
// No factor is copied, whatever the order of its indices.
// Errors: a formula that is not "p,q->o", an index twice in one factor or in the result, an index of the result in neither
// factor, factors that do not have the formula's indices, disagree about an extent, or differ in dtype or device.
Tensor contract(std::string_view formula, const Arg& a, const Arg& b);

}  // namespace ricci
