// Where the checks come from: one function per group of ops.
#pragma once
#include "ops/checks/checks.h"

namespace ricci {

void add_element_checks(std::vector<OpCheck>& all);  // formulas over single elements, shapes
void add_row_checks(std::vector<OpCheck>& all);      // softmax, layer norm, sums
void add_product_checks(std::vector<OpCheck>& all);  // contract, linear
void add_attention_checks(std::vector<OpCheck>& all);
void add_model_checks(std::vector<OpCheck>& all);    // embedding, classifier, recomputation

using CheckInputs = const std::vector<Parameter>&;
using CheckOutputs = std::vector<Tensor>;

}  // namespace ricci
