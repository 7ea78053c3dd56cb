// ricci-inspect, in the order to read: found.h looks into a model, pictures.cpp draws what was found, report.cpp writes the files: a
// drawing each, a page with all of them, and the numbers.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/lab/inspection/found.h"
#include "apps/lab/report/report.h"

namespace ricci::apps {

// A drawing with a sentence that says what it shows.
struct Picture {
  std::string name;  // of its file, without .svg
  std::string sentence;
  int64_t layer = 0;
  Drawing svg;
};

// In the order of layers, and within a layer of kinds: scores, coefficients, matrices, spectrum, distances. They refer to `found`.
std::vector<Picture> pictures_of(const Found& found);

// One page that needs nothing else, well-formed as XML too.
std::string page_of(const Found& found, const std::vector<Picture>& pictures, Theme theme);

// Matrices of more than this many columns are left out of the numbers; their parameters are in the run's model.safetensors.
constexpr int64_t kMaxColumns = 128;
//   {"run", "mixer", "text": [{"id", "token"}], "tokens", "missing", "layers": [{"layer", "name", "query_tokens", "heads": [
//     {"head", "key_tokens", "scores", "coefficients", "matrix", "symmetric", "eigenvalues" or "singular_values", "squared_distances",
//     "nearest"}]}]}
// Numbers have 8 digits; what a mixer does not have is left out.
std::string json_of(const Found& found);

// Writes NAME.svg for each picture, index.html and inspect.json into a folder, which is made where it is not there. Returns the number of
// files.
int64_t write_report(const std::string& folder, const Found& found, Theme theme);

}  // namespace ricci::apps
