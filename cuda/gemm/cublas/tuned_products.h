// The algorithms by which cuBLASLt's products run, each the fastest of several that were timed at the first product of its shape. They are
// kept in a file, so that a run that goes on has the algorithms, and with them the bits, that it began with.
//   cuBLASLt 130000 on NVIDIA H200
//   1 65536 3072 768 ... = 66 21 0 ...     all that two products with one plan have in common, and the words of the algorithm
#pragma once
#include <map>
#include <optional>
#include <string>

#include "core/files/file.h"

namespace ricci {

class TunedProducts {
 public:
  // Reads the file, if there is one. Error: names the path and the line that is none of such a file.
  explicit TunedProducts(const FilePlace& place);

  // Names the library and the GPU by which products are computed. Algorithms of others are forgotten, which stderr says.
  void made_by(const std::string& library);

  // The algorithm of a product; null: none is known.
  const std::string* find(const std::string& product) const;
  // Keeps an algorithm, in the file too. Error: as the system says.
  void add(const std::string& product, const std::string& algorithm);

 private:
  FilePlace place_;
  std::string library_;
  std::map<std::string, std::string> algorithms_;
};

// From now on this process times products and keeps their algorithms in the file; no place: no longer. Error: as TunedProducts.
void tune_products(const std::optional<FilePlace>& place);
TunedProducts* tuned_products();  // null: products are not timed

}  // namespace ricci
