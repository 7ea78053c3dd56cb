// Curves of metrics.
#pragma once
#include <string>
#include <vector>

#include "apps/lab/chart/chart.h"
#include "apps/lab/plot/records.h"

namespace ricci::apps {

struct CurveOptions {
  std::vector<std::string> keys = {"train_loss", "val_loss", "val_accuracy", "lr", "grad_norm", "tokens_per_s"};
  std::string x = "step";  // step, tokens or time
  double smooth = 0;       // number of steps that noisy curves are averaged over (0: none)
  bool log_y = false;
};

// For each value, the weighted mean of all values up to it. Weights fall by a factor of e every width / 2 steps, so the mean varies like
// the mean of the last `width` values.
std::vector<double> smoothed(const std::vector<double>& values, const std::vector<double>& steps, double width);

// Gives runs that differ only in their seeds one name: a_lr_1e-3_1, a_lr_1e-3_2 and a_lr_1e-3_3 become a_lr_1e-3 (3 seeds).
void name_by_setting(std::vector<ListedRun>& runs);

// Uses a colour for each name, or for training and validation of a single name; validation curves are dashed. Runs with the same name are
// drawn as their mean, in a band that contains all of them. A key with asterisks is a pattern: the matching curves of a run share a panel.
// Omits keys without values. Errors: no run has the key or x (with the nearest metric); no value can be drawn.
Chart chart_of(std::vector<RunRecords> runs, const CurveOptions& options);

}  // namespace ricci::apps
