// Curves of the metrics of runs.
#pragma once
#include <string>
#include <vector>

#include "apps/lab/chart/chart.h"
#include "apps/lab/plot/records.h"

namespace ricci::apps {

struct CurveOptions {
  std::vector<std::string> keys = {"train_loss", "val_loss", "val_accuracy", "lr", "grad_norm", "tokens_per_s"};
  std::string x = "step";  // step, tokens or time
  double smooth = 0;       // steps, for the mean of noisy curves; 0: no mean
  bool log_y = false;
};

// The mean of all values up to each one. Weights fall by e every width / 2 steps: it varies like the mean of the last `width` values.
std::vector<double> smoothed(const std::vector<double>& values, const std::vector<double>& steps, double width);

// Gives the runs that differ only in their seeds one name: a_lr_1e-3 (3 seeds) to a_lr_1e-3_1, a_lr_1e-3_2 and a_lr_1e-3_3.
void name_by_setting(std::vector<ListedRun>& runs);

// A colour for each name, or for training and validation of a lone name; validation is dashed. Runs of one name are their mean in a
// band that holds all of them. A key with asterisks is a pattern of keys: the curves of one run that it matches share a panel. Keys without
// values are left out. Errors: a key or x that no run has, with the nearest one; no value to draw.
Chart chart_of(std::vector<RunRecords> runs, const CurveOptions& options);

}  // namespace ricci::apps
