// The result of a lab program in four forms: text of at most 80 columns, JSON, SVG, and a page in a single file.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "apps/lab/chart/heat_map.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/table.h"
#include "core/error.h"

namespace ricci::apps {

struct Report {
  std::string title = {};  // one line
  ResultTable table = {};
  std::vector<std::string> notes = {};  // facts that explain the numbers, one per line
  Json json = {};                       // null means the rows of the table
  std::vector<Picture> pictures = {};   // if empty, no SVG is written, and the page has only the table

  void add(const Chart& chart);  // adds its pictures
};

struct ReportOptions {
  std::string json;  // a file, - for stdout instead of the table, or empty
  std::string out;   // an .svg or .html file, or empty
};

void add_output_option(CLI::App& app, ReportOptions& options, const char* help);
void add_json_flag(CLI::App& app, ReportOptions& options);  // --json: JSON to stdout
void add_json_file(CLI::App& app, ReportOptions& options);

// Checks file names before anything is computed. `draws`: the report has pictures. Errors: a file name has the wrong ending, a folder is
// missing.
void check(const ReportOptions& options, bool draws = true);

std::string text_of(const Report& report);  // title, table and notes; ends without a line end
std::string json_of(const Report& report);
// Writes a page if the file name ends in .html, else SVG. Error: the report has no picture.
void draw(const Report& report, const std::string& file);
void publish(const Report& report, const ReportOptions& options);  // prints the text or the JSON, and writes the files

// An SVG file with the title and the pictures, group by group in rows, two charts wide. The drawing shrinks to the window width.
std::string to_svg(const std::string& title, const std::vector<Picture>& pictures);
// A page of pictures with captions, the table and notes, as well-formed XML.
std::string page_of(const Report& report);

// ---- Statistics of a few values: means over seeds, quartiles of times, the best of a list

// The 97.5% quantile of Student's t distribution, accurate to 0.2%. Error: 0 degrees of freedom.
inline double student_t(size_t degrees_of_freedom) {
  constexpr double kFew[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139};
  if (degrees_of_freedom == 0) fail("student_t: 0 degrees of freedom, expected at least 1");
  if (degrees_of_freedom <= std::size(kFew)) return kFew[degrees_of_freedom - 1];
  // The normal quantile plus the first terms of a series in 1 / n (Abramowitz and Stegun, 26.7.5).
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(degrees_of_freedom);
  return z + (std::pow(z, 3) + z) / (4 * n) + (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * n * n);
}

// The deviation divides by n - 1. `half_width`: half of the mean's 95% interval by Student's t. Both results are 0 for a single value.
struct MeanSpread {
  double mean = 0, deviation = 0, half_width = 0;
};
inline MeanSpread mean_spread(const std::vector<double>& values) {
  MeanSpread result;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / n;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(squares / (n - 1));
  result.half_width = student_t(values.size() - 1) * result.deviation / std::sqrt(n);
  return result;
}

struct Spread {
  double min = 0, lower_quartile = 0, median = 0, upper_quartile = 0, max = 0;
};
// Quartiles interpolate linearly, as NumPy's quantile does. Error: `values` is empty.
inline Spread spread_of(std::vector<double> values) {
  if (values.empty()) fail("bench: no step was timed");
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double q) {
    const double rank = q * static_cast<double>(values.size() - 1);
    const size_t first = static_cast<size_t>(rank), second = std::min(first + 1, values.size() - 1);
    return values[first] + (rank - static_cast<double>(first)) * (values[second] - values[first]);
  };
  return {values.front(), quantile(0.25), quantile(0.5), quantile(0.75), values.back()};
}

// The first `count` elements in the order of `before`.
template <class T, class Before> std::vector<T> best_of(std::vector<T> all, int64_t count, const Before& before) {
  const auto end = all.begin() + std::min<int64_t>(count, std::ssize(all));
  std::partial_sort(all.begin(), end, all.end(), before);
  all.erase(end, all.end());
  return all;
}

}  // namespace ricci::apps
