#include "cuda/gemm/cublas/tuned_products.h"

#include <cstdio>
#include <sstream>

#include "core/error.h"
#include "core/files/file.h"

namespace ricci {
namespace {

constexpr const char* kEquals = " = ";

TunedProducts* in_use = nullptr;  // outlives every plan

}  // namespace

TunedProducts::TunedProducts(const std::string& path) : path_(path) {
  std::istringstream lines(find_text(path).value_or(""));
  std::getline(lines, library_);
  int number = 1;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const size_t equals = line.find(kEquals);
    if (equals == line.npos) fail("{}: line {} is not PRODUCT = ALGORITHM", {path, number});
    algorithms_[line.substr(0, equals)] = line.substr(equals + 3);
  }
}

void TunedProducts::made_by(const std::string& library) {
  if (library == library_) return;
  if (!algorithms_.empty())
    std::fprintf(
        stderr, "%s: made by %s; products are timed again for %s\n", path_.c_str(), one_line(library_, 200).c_str(), library.c_str());
  library_ = library;
  algorithms_.clear();
}

const std::string* TunedProducts::find(const std::string& product) const {
  const auto found = algorithms_.find(product);
  return found == algorithms_.end() ? nullptr : &found->second;
}

void TunedProducts::add(const std::string& product, const std::string& algorithm) {
  algorithms_[product] = algorithm;
  std::string text = library_ + "\n";
  for (const auto& [each, of_each] : algorithms_) text += each + kEquals + of_each + "\n";
  write_atomically(path_, text);
}

void tune_products(const std::optional<TunedProducts>& tuned) { in_use = tuned ? new TunedProducts(*tuned) : nullptr; }

TunedProducts* tuned_products() { return in_use; }

}  // namespace ricci
