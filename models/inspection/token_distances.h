// Distances between tokens.
#pragma once
#include "models/inspection/layers.h"
#include "models/model.h"

namespace ricci {

// The squared distances from each token to every token of the vocabulary under every head's metric, without positions: [n t v], f64 on the
// CPU. Empty if the layer's scores do not come from a metric.
Tensor token_distances(const Model& model, const MixingLayer& layer, const Tensor& ids_t);

}  // namespace ricci
