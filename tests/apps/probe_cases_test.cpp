// Golden values of an independent implementation (tests/golden/reference.py): logits, loss and every gradient. tests/golden/stored.py
// describes the files of the cases.
#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "autograd/tape.h"
#include "core/files/safetensors.h"
#include "cuda/device/device.h"
#include "models/model.h"
#include "tests/data/files.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct CaseConfig {
  ModelConfig model;
};
void visit_fields(CaseConfig& c, const Fields& field) { ricci::visit_fields(c.model, field.section("model")); }
void apply_preset(CaseConfig& c) { ricci::apply_preset(c.model); }
void check(const CaseConfig& c) { ricci::check(c.model); }

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

const std::string kFolder = RICCI_TESTS_FOLDER "/golden/probe_cases/";

// The settings of each case.
std::map<std::string, std::vector<std::string>> stored_cases() {
  std::map<std::string, std::vector<std::string>> cases;
  std::istringstream lines(test_data::read_file(kFolder + "cases.yaml"));
  std::vector<std::string>* settings = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (const size_t colon = line.find(": "); line.starts_with("  "))
      settings->push_back("model." + line.substr(2, colon - 2) + "=" + line.substr(colon + 2));
    else if (line.ends_with(':')) settings = &cases[line.substr(0, line.size() - 1)];
  }
  return cases;
}

void check_case(const std::string& name, const std::vector<std::string>& settings, Device device) {
  Model model(apps::load_config<CaseConfig>("", settings).model);
  const SafetensorsFile file(kFolder + std::string(name_of(model.config().family)) + ".safetensors");
  const auto stored = [&](const std::string& tensor) { return file.load(name + "/" + tensor); };
  model.load([&](const std::string& path, const Shape&) { return stored("weights." + path); });
  model.place(Dtype::f64, device);
  const Tensor ids = to(stored("in.ids"), device), targets = to(stored("in.targets"), device);
  const Tensor lengths = file.contains(name + "/in.lengths") ? to(stored("in.lengths"), device) : Tensor();
  check_close(model.logits({.ids_bc = ids, .lengths_b = lengths}), stored("expected.logits"));
  Tape tape;
  const Tensor loss = model.loss({ids, targets, lengths});
  check_close(loss, stored("expected.loss"));
  tape.backward(loss);
  int64_t gradients = 0;
  model.each_parameter([&](const std::string& path, Parameter& p) {
    CAPTURE(path);
    check_close(p.grad ? p.grad : zeros_like(p.value), stored("expected.grad." + path));
    ++gradients;
  });
  const auto is_gradient = [&](const std::string& tensor) { return tensor.starts_with(name + "/expected.grad."); };
  CHECK(std::count_if(file.names().begin(), file.names().end(), is_gradient) == gradients);
}

}  // namespace

TEST_CASE("logits, loss and gradients are those of the reference") {
  int padded = 0;
  const auto cases = stored_cases();
  for (const auto& each : cases) {
    const std::string& name = each.first;
    for (Device device : {Device::cpu, Device::cuda_emulated}) {
      CAPTURE(name);
      CAPTURE(std::string(name_of(device)));
      check_case(name, each.second, device);
    }
    padded += name.ends_with("_padded");
  }
  CHECK(cases.size() >= 38);
  CHECK(padded >= 12);
}
