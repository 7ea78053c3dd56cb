// What was found as files: a drawing each, a page with all of them, and the numbers.
#pragma once
#include <string>

#include "apps/lab/inspection/pictures.h"

namespace ricci::apps {

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
