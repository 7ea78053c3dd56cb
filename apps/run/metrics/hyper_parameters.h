// The config of a run as hyper-parameters for TensorBoard.
#pragma once
#include <vector>

#include "apps/run/config/config.h"
#include "apps/run/metrics/tensorboard.h"

namespace ricci::apps {

// The keys that the run reads, except its name: numbers and truth values as such, everything else as config.yaml writes it. A key that is
// null is left out.
std::vector<HyperParameter> hyper_parameters(const std::vector<Field>& fields);

template <class Config> std::vector<HyperParameter> hyper_parameters(Config config) { return hyper_parameters(fields_of(config)); }

}  // namespace ricci::apps
