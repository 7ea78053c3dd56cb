// Where the checks come from: one function per group of ops.
#pragma once
#include "ops/checks/checks.h"

namespace ricci {

void add_element_checks(std::vector<OpCheck>& all);  // formulas over single elements, shapes
void add_row_checks(std::vector<OpCheck>& all);      // softmax, cross-entropy, layer norm, sums
void add_pooling_checks(std::vector<OpCheck>& all);  // means over positions
void add_scale_checks(std::vector<OpCheck>& all);    // cells of coarser scales
void add_product_checks(std::vector<OpCheck>& all);  // contract, linear
void add_attention_checks(std::vector<OpCheck>& all);
void add_mixing_checks(std::vector<OpCheck>& all);  // shift-and-sum, metric scores
void add_model_checks(std::vector<OpCheck>& all);   // embedding, classifier, recomputation

Tensor integers_on(const std::vector<int64_t>& values, Device device);
// Drawn targets of which every third is taken away.
Tensor with_gaps(const Tensor& targets_r);

using CheckInputs = const std::vector<Parameter>&;
using CheckOutputs = std::vector<Tensor>;

}  // namespace ricci
