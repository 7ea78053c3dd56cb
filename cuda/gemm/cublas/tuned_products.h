// The algorithms by which cuBLASLt's products run, each the fastest of several that were timed at the first product of its shape. A product
// that first appears while a graph is recorded is not timed: it keeps the library's first proposal. A file keeps the algorithms, so that a
// run that goes on has those, and with them the bits, that it began with.
//   cuBLASLt 130000 on NVIDIA H200
//   1 65536 3072 768 ... = 66 21 0 ...     all that two products with one plan have in common, and the words of the algorithm
#pragma once
#include <map>
#include <optional>
#include <string>

namespace ricci {

class TunedProducts {
 public:
  // Reads the file, if there is one. Error: names the path and the first line that is not PRODUCT = ALGORITHM.
  explicit TunedProducts(const std::string& path);

  // Names the library and the GPU by which products are computed. Algorithms found with another library or GPU are forgotten, with a line
  // on stderr.
  void made_by(const std::string& library);

  // The algorithm of a product; null if none is known.
  const std::string* find(const std::string& product) const;
  // Keeps an algorithm, and writes the file. Error: the system's.
  void add(const std::string& product, const std::string& algorithm);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string library_;
  std::map<std::string, std::string> algorithms_;
};

// From now on this process times the products that `tuned` does not know; without a value it times none any more.
void tune_products(const std::optional<TunedProducts>& tuned);
TunedProducts* tuned_products();  // null if products are not timed

}  // namespace ricci
