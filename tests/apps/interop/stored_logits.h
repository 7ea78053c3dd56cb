// Models that another program wrote, with the logits that it computed.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "core/files/safetensors.h"
#include "models/model.h"

namespace ricci {

// The largest difference from those in FOLDER/logits.safetensors; NaN where one is.
inline double largest_error(const Model& model, const std::string& folder) {
  const SafetensorsFile file(folder + "/logits.safetensors");
  const Tensor logits = model.logits({.ids_bc = file.load("ids")}), expected = file.load("logits");
  REQUIRE(logits.shape() == expected.shape());
  double worst = 0;
  for (int64_t i = 0; i < logits.size(); ++i) {
    const double error = std::abs(static_cast<double>(logits.data<float>()[i]) - expected.data<double>()[i]);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

}  // namespace ricci
