// ricci check: checks the gradient of every op on every device, and prints a table.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "apps/lab/commands.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/table.h"
#include "core/choice.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "ops/checks/checks.h"

using namespace ricci;

namespace {

struct Options {
  bool list = false;
  double tolerance = 1e-6;
  std::string op;
  std::vector<std::string> devices;  // empty means all
};

struct Row {
  std::string op;
  int cases = 0;
  std::map<Device, double> worst = {};  // the largest error on each available device
  std::string complaint = {};
};

void check_one(const OpCheck& check, Device device, double tolerance, Row& row) {
  const GradCheck result = run_check(check, device);
  double& worst = row.worst[device];
  worst = std::max(worst, result.worst);
  if (result.worst <= tolerance && result.least_norm > 0) return;
  row.complaint += format_message("  {}, {}, on {}: {}\n",
      {check.op, check.variant, name_of(device), result.least_norm > 0 ? result.worst_at : "a gradient is zero everywhere"});
}

int list_ops() {
  std::set<std::string> names;
  for (const OpCheck& check : op_checks()) names.insert(check.op);
  for (const char* name : ops_without_backward()) names.insert(name);
  for (const std::string& name : names) std::puts(name.c_str());
  return 0;
}

// The columns of the table: the requested devices, or all, even unavailable ones. Error: a requested device is not available.
std::vector<Device> devices_of(const Options& options) {
  std::vector<Device> devices;
  for (const std::string& name : options.devices) devices.push_back(parse_device(name.c_str()));
  if (!devices.empty()) return devices;
  if (!available(Device::cuda)) std::printf("no device %s: %s\n", name_of(Device::cuda), why_not(Device::cuda));
  return {Device::cpu, Device::cuda_emulated, Device::cuda};
}

std::vector<Row> run_checks(const Options& options, const std::vector<Device>& devices) {
  std::map<std::string, Row> rows;
  for (const OpCheck& check : op_checks()) {
    if (!options.op.empty() && options.op != check.op) continue;
    Row& row = rows.emplace(check.op, Row{check.op}).first->second;
    ++row.cases;
    for (const Device device : devices)
      if (available(device)) check_one(check, device, options.tolerance, row);
  }
  std::vector<Row> all;
  for (auto& [op, row] : rows) all.push_back(std::move(row));
  return all;
}

// Prints the largest error for each op and device, relative to the largest gradient of the same input.
int print_table(const std::vector<Row>& rows, const std::vector<Device>& devices, double tolerance) {
  apps::ResultTable table;
  table.add({.heading = "op", .left = true}, rows, &Row::op);
  table.add({.heading = "cases"}, rows, &Row::cases);
  for (const Device device : devices)
    table.add({.heading = name_of(device), .format = "{:.1e}", .missing = "no device"}, rows, [&](const Row& row) {
      const auto worst = row.worst.find(device);
      return worst == row.worst.end() ? Json() : Json(worst->second);
    });
  table.add({.heading = " ", .left = true}, rows, [](const Row& row) { return row.complaint.empty() ? "" : "WRONG"; });
  apps::print(text_of(table));
  for (const Row& row : rows) std::fputs(row.complaint.c_str(), stdout);
  const auto failed = std::count_if(rows.begin(), rows.end(), [](const Row& row) { return !row.complaint.empty(); });
  std::printf("%zu op%s, %td wrong (tolerance %g, f64, against central differences)\n", rows.size(), rows.size() == 1 ? "" : "s", failed,
      tolerance);
  return failed == 0 ? 0 : 1;
}

int run(const Options& options) {
  if (options.list) return list_ops();
  if (!(options.tolerance > 0 && std::isfinite(options.tolerance)))
    fail("--tolerance: expected a number above 0, got {}", {options.tolerance});
  const std::vector<Device> devices = devices_of(options);
  const auto rows = run_checks(options, devices);
  if (rows.empty()) fail("no op is called '{}'; --list shows all ops", {options.op});
  return print_table(rows, devices, options.tolerance);
}

void add_options(CLI::App& app, Options& options) {
  app.add_flag("--list", options.list, "Print the names of the ops and exit");
  app.add_option("--op", options.op, "Check only this op");
  app.add_option("--device", options.devices, list_of<Device>() + "; by default all that exist");
  app.add_option("--tolerance", options.tolerance, "Largest relative error that passes")->capture_default_str();
}

}  // namespace

const apps::Command apps::check_command{{.name = "ricci check",
                                            .summary = "Checks the gradient of every op on every device.",
                                            .examples = "ricci check\n"
                                                        "ricci check --op softmax --device cpu"},
    apps::with_options<Options, add_options, run>};
