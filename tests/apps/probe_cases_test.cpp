// Golden values of an independent implementation (tests/golden/reference.py): logits, loss and every gradient.
#include <cmath>
#include <filesystem>
#include <string>

#include "apps/run/config/config.h"
#include "autograd/tape.h"
#include "core/files/safetensors.h"
#include "cuda/device/device.h"
#include "models/model.h"
#include "models/training/checkpoint.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct CaseConfig {
  ModelConfig model;
};
void visit_fields(CaseConfig& c, const Fields& field) { ricci::visit_fields(c.model, field.section("model")); }
void apply_preset(CaseConfig& c) { ricci::apply_preset(c.model); }
void check(const CaseConfig& c) { ricci::check(c.model); }
void resolve(CaseConfig& c) { ricci::resolve(c.model); }

void check_close(const Tensor& got, const Tensor& expected) {
  REQUIRE(got.shape() == expected.shape());
  const Tensor host = to(got, Device::cpu);
  double worst = 0;
  for (int64_t i = 0; i < host.size(); ++i) {
    const double e = expected.data<double>()[i];
    raise_to(worst, std::abs(host.data<double>()[i] - e) / std::max(1.0, std::abs(e)));
  }
  CHECK(worst < 1e-9);
}

void check_case(const std::string& folder, Device device) {
  const SafetensorsFile input(folder + "/in.safetensors"), expected(folder + "/expected.safetensors");
  Model model(apps::load_config<CaseConfig>(folder + "/model.yaml").model);
  load_weights(model, folder + "/weights.safetensors");
  model.place(Dtype::f64, device);
  const Tensor ids = to(input.load("ids"), device), targets = to(input.load("targets"), device);
  const Tensor lengths = input.contains("lengths") ? to(input.load("lengths"), device) : Tensor();
  check_close(model.logits({.ids_bc = ids, .lengths_b = lengths}), expected.load("logits"));
  Tape tape;
  const Tensor loss = model.loss({ids, targets, lengths});
  check_close(loss, expected.load("loss"));
  tape.backward(loss);
  size_t gradients = 0;
  model.each_parameter([&](const std::string& path, Parameter& p) {
    CAPTURE(path);
    check_close(p.grad ? p.grad : zeros_like(p.value), expected.load("grad." + path));
    ++gradients;
  });
  CHECK(gradients + 2 == expected.names().size());
}

}  // namespace

TEST_CASE("logits, loss and gradients are those of the reference") {
  int cases = 0, padded = 0;
  const auto folder = std::filesystem::path(RICCI_TESTS_FOLDER) / "golden" / "probe_cases";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    for (Device device : {Device::cpu, Device::cuda_emulated}) {
      CAPTURE(entry.path().filename().string());
      CAPTURE(std::string(name_of(device)));
      check_case(entry.path().string(), device);
    }
    ++cases, padded += entry.path().filename().string().find("padded") != std::string::npos;
  }
  CHECK(cases >= 4);
  CHECK(padded > 0);
}
