// ricci-check: the gradient check of every op on every device of this machine, as a table.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "apps/terminal/cli.h"
#include "core/error.h"
#include "core/names.h"
#include "cuda/device/device.h"
#include "ops/checks/checks.h"

using namespace ricci;

namespace {

struct Options {
  bool list = false;
  double tolerance = 1e-6;
  std::string op;
  std::vector<std::string> devices;  // none: all there are
};

struct Row {
  int cases = 0;
  std::map<std::string, double> worst;
  std::string complaint;
};

void check_one(const OpCheck& check, Device device, double tolerance, Row& row) {
  const GradCheck result = run_check(check, device);
  double& worst = row.worst[name_of(device)];
  worst = std::max(worst, result.worst);
  if (result.worst <= tolerance && result.least_norm > 0) return;
  row.complaint += std::string("  ") + check.op + ", " + check.what + ", on " + name_of(device) + ": " +
                   (result.least_norm > 0 ? result.worst_at : "a gradient is zero everywhere") + "\n";
}

int list_ops() {
  std::map<std::string, bool> names;
  for (const OpCheck& check : op_checks()) names[check.op] = true;
  for (const char* name : ops_without_backward()) names[name] = true;
  for (const auto& [name, known] : names) std::puts(name.c_str());
  return 0;
}

// The columns of the table. A device that was asked for must be there; without a question all have one, missing ones too.
std::vector<Device> devices_of(const Options& options) {
  std::vector<Device> devices;
  for (const std::string& name : options.devices) devices.push_back(parse_device(name.c_str()));
  if (!devices.empty()) return devices;
  if (!available(Device::cuda)) std::printf("no device %s: %s\n", name_of(Device::cuda), why_not(Device::cuda));
  return {Device::cpu, Device::cuda_emulated, Device::cuda};
}

std::map<std::string, Row> run_checks(const Options& options, const std::vector<Device>& devices) {
  std::map<std::string, Row> rows;
  for (const OpCheck& check : op_checks()) {
    if (!options.op.empty() && options.op != check.op) continue;
    Row& row = rows[check.op];
    ++row.cases;
    for (const Device device : devices)
      if (available(device)) check_one(check, device, options.tolerance, row);
  }
  return rows;
}

// The largest error relative to the largest gradient of the same input, per op and device.
int print_table(const std::map<std::string, Row>& rows, const std::vector<Device>& devices, double tolerance) {
  std::printf("%-22s %5s", "op", "cases");
  for (const Device device : devices) std::printf(" %14s", name_of(device));
  std::puts("");
  int failed = 0;
  for (const auto& [op, row] : rows) {
    std::printf("%-22s %5d", op.c_str(), row.cases);
    for (const Device device : devices) {
      const auto worst = row.worst.find(name_of(device));
      if (worst == row.worst.end()) std::printf(" %14s", "no device");
      else std::printf(" %14.1e", worst->second);
    }
    std::puts(row.complaint.empty() ? "" : "  WRONG");
    failed += !row.complaint.empty();
  }
  for (const auto& [op, row] : rows) std::fputs(row.complaint.c_str(), stdout);
  std::printf(
      "%zu ops, %d wrong (tolerance %g relative, f64, central differences against a random direction)\n", rows.size(), failed, tolerance);
  return failed == 0 ? 0 : 1;
}

int run(const Options& options) {
  if (options.list) return list_ops();
  if (!(options.tolerance > 0 && std::isfinite(options.tolerance)))
    fail("--tolerance: expected a number above 0, got {}", {options.tolerance});
  const std::vector<Device> devices = devices_of(options);
  const auto rows = run_checks(options, devices);
  if (rows.empty()) fail("no op is called '{}'; --list shows them", {options.op});
  return print_table(rows, devices, options.tolerance);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return apps::run_app(
      argc, argv, {"ricci-check", "Checks the gradient of every op against central differences, on every device."},
      [&](CLI::App& app) {
        app.add_flag("--list", options.list, "Print the names of the ops that are recorded and exit");
        app.add_option("--op", options.op, "Only this op");
        app.add_option("--device", options.devices, list_of<Device>() + "; several are allowed");
        app.add_option("--tolerance", options.tolerance, "Largest relative error that passes")->capture_default_str();
      },
      [&] { return run(options); });
}
