// contract("p,q->o", a, b):  y_o = sum over all indices not in o of a_p b_q
//   da_p = sum of dy_o b_q,   db_q = sum of dy_o a_p          the same contraction with the letters rotated
// gemm() computes it. A letter in both factors and the result is a batch index, a letter in one factor and the result is a row or a column,
// and a letter in both factors but not in the result is summed. Adjacent letters of a kind become one extent of the matrix product if they
// are contiguous in memory; a loop runs over the remaining letters. A letter in only one factor is summed first.
#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "autograd/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/gemm/gemm.h"
#include "cuda/seam.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/products/products.h"
#include "ops/rows/reduce.h"

namespace ricci {
namespace contract_details {

struct Formula {
  std::string a, b, y;
  std::string text() const { return a + "," + b + "->" + y; }
};

inline bool has(const std::string& letters, char letter) { return letters.find(letter) != letters.npos; }

HOST Formula parse(std::string_view text) {
  const size_t comma = text.find(','), arrow = text.find("->");
  if (comma == text.npos || arrow == text.npos || comma > arrow || text.rfind(',') != comma)
    fail("contract: the formula is '{}', expected the form 'p,q->o'", {text});
  const Formula f{
      std::string(text.substr(0, comma)), std::string(text.substr(comma + 1, arrow - comma - 1)), std::string(text.substr(arrow + 2))};
  for (const std::string& letters : {f.a, f.b, f.y})
    for (char letter : letters) {
      if (!std::isalpha(static_cast<unsigned char>(letter))) fail("contract: '{}' in '{}' is not a letter", {letter, text});
      if (std::count(letters.begin(), letters.end(), letter) > 1)
        fail("contract: duplicate index {} in '{}' of '{}'", {letter, letters, text});
    }
  for (char letter : f.y)
    if (!has(f.a, letter) && !has(f.b, letter)) fail("contract: index {} of the result of '{}' is in neither factor", {letter, text});
  return f;
}

HOST void check_factors(const Formula& f, const Tensor& a, const Tensor& b) {
  auto rank = [&](const char* name, const std::string& letters, const Tensor& t) {
    if (static_cast<int>(letters.size()) != t.shape().rank())
      fail("contract: {}{} does not have the indices '{}' of '{}'", {name, show(t.shape()), letters, f.text()});
  };
  rank("a", f.a, a);
  rank("b", f.b, b);
  for (size_t i = 0; i < f.a.size(); ++i) {
    const size_t j = f.b.find(f.a[i]);
    if (j == f.b.npos || a.shape()[static_cast<int>(i)] == b.shape()[static_cast<int>(j)]) continue;
    fail("contract: the extent of index {} is {} in a{} and {} in b{} of '{}', expected equal extents",
        {f.a[i], a.shape()[static_cast<int>(i)], show(a.shape()), b.shape()[static_cast<int>(j)], show(b.shape()), f.text()});
  }
}

// One index, or a group of merged indices: its extent, and its stride in a, b and y (0 if it is not in that tensor).
struct Index {
  int64_t extent = 1, a = 0, b = 0, y = 0;
};
enum Kind { batch, row, column, sum };

inline int64_t extent_of(char letter, const Formula& f, const Tensor& a, const Tensor& b) {
  const size_t in_a = f.a.find(letter);
  return in_a != f.a.npos ? a.shape()[static_cast<int>(in_a)] : b.shape()[static_cast<int>(f.b.find(letter))];
}

inline int64_t stride_of(char letter, const std::string& letters, const Shape& shape) {
  const size_t position = letters.find(letter);
  if (position == letters.npos) return 0;
  int64_t stride = 1;
  for (size_t i = position + 1; i < letters.size(); ++i) stride *= shape[static_cast<int>(i)];
  return stride;
}

HOST Kind kind_of(bool in_a, bool in_b, bool in_y) {
  if (!in_y) return sum;
  if (in_a && in_b) return batch;
  return in_a ? row : column;
}

// The indices of one kind in the order of the letters, merged if all tensors allow it.
HOST std::vector<Index> indices_of(Kind kind, const Formula& f, const Tensor& a, const Tensor& b, const Shape& y) {
  std::vector<Index> found;
  for (char letter : kind == sum ? f.a : f.y) {
    const bool in_a = has(f.a, letter), in_b = has(f.b, letter), in_y = has(f.y, letter);
    if (kind_of(in_a, in_b, in_y) != kind) continue;
    const int64_t extent = extent_of(letter, f, a, b);
    const Index i{extent, stride_of(letter, f.a, a.shape()), stride_of(letter, f.b, b.shape()), stride_of(letter, f.y, y)};
    if (extent == 1) continue;
    if (!found.empty()) {
      Index& outer = found.back();
      if (outer.a == i.a * extent && outer.b == i.b * extent && outer.y == i.y * extent) {
        outer = {outer.extent * extent, i.a, i.b, i.y};
        continue;
      }
    }
    found.push_back(i);
  }
  return found;
}

// Removes the longest index from the list: it becomes an extent of the matrix product.
HOST Index take_longest(std::vector<Index>& list) {
  if (list.empty()) return {};
  const auto longest = std::max_element(list.begin(), list.end(), [](const Index& p, const Index& q) { return p.extent < q.extent; });
  const Index taken = *longest;
  list.erase(longest);
  return taken;
}

// Returns the product, not recorded, in dtype `result`: the dtype of the factors, or f32 if the factors are bf16. Every letter is in at
// least two of a, b and the result.
HOST Tensor multiply(const Formula& f, const Tensor& a, const Tensor& b, Dtype result) {
  Shape shape;
  for (char letter : f.y) shape.push_back(extent_of(letter, f, a, b));
  std::vector<Index> loops;
  Index indices[4];
  size_t summed_from = 0;
  for (Kind kind : {batch, row, column, sum}) {
    auto list = indices_of(kind, f, a, b, shape);
    indices[kind] = take_longest(list);
    if (kind == sum) summed_from = loops.size();  // from here on the loops add to the same elements
    loops.insert(loops.end(), list.begin(), list.end());
  }
  if (a.size() == 0 || b.size() == 0) return zeros(shape, result, a.device());
  // A sum of many products is rounded once, at its end.
  const bool f32 = a.dtype() == Dtype::bf16 && (result == Dtype::f32 || summed_from < loops.size());
  const Tensor y = like(a, shape, f32 ? Dtype::f32 : a.dtype());
  auto element_of = [&](const Tensor& t, int64_t element) { return static_cast<char*>(t.raw()) + element * size_of(t.dtype()); };
  int64_t products = 1;
  for (const Index& loop : loops) products *= loop.extent;
  for (int64_t number = 0; number < products; ++number) {
    int64_t in_a = 0, in_b = 0, in_y = 0, outer = number;
    bool accumulate = false;
    for (size_t i = loops.size(); i-- > 0; outer /= loops[i].extent) {
      const int64_t place = outer % loops[i].extent;
      in_a += place * loops[i].a;
      in_b += place * loops[i].b;
      in_y += place * loops[i].y;
      accumulate |= i >= summed_from && place > 0;
    }
    // clang-format off
    gemm({.device = a.device(), .dtype = a.dtype(), .batch = indices[batch].extent, .m = indices[row].extent,
          .n = indices[column].extent, .k = indices[sum].extent, .a = element_of(a, in_a), .b = element_of(b, in_b),
          .a_at = {indices[row].a, indices[sum].a, indices[batch].a}, .b_at = {indices[sum].b, indices[column].b, indices[batch].b},
          .c = element_of(y, in_y), .c_at = {indices[row].y, indices[column].y, indices[batch].y},
          .accumulate = accumulate, .c_f32 = f32});
    // clang-format on
  }
  return convert(y, result);
}

// Sums a factor over the letters that are only in this factor, and removes them from the formula.
HOST Tensor without_lone(const Tensor& x, std::string& letters, const std::string& other, const std::string& result) {
  Tensor t = x;
  for (size_t i = letters.size(); i-- > 0;) {
    if (has(other, letters[i]) || has(result, letters[i])) continue;
    t = ricci::sum(t, static_cast<int>(i));
    letters.erase(i, 1);
  }
  return t;
}

}  // namespace contract_details

HOST Tensor contract(std::string_view formula, const Arg& a, const Arg& b) {
  using namespace contract_details;
  DIMS(a, b);
  Formula f = parse(formula);
  check_factors(f, a, b);
  const std::string all_of_a = f.a;
  const Arg left(without_lone(a, f.a, f.b, f.y), a.site), right(without_lone(b, f.b, all_of_a, f.y), b.site);
  return record("contract", {left, right}, multiply(f, left, right, a.dtype()), keep(left, right, f),
      [](const Tensor& dy, const Tensor& a, const Tensor& b, const Formula& f) -> Grads {
        return {wants_gradient(0) ? multiply({f.y, f.b, f.a}, dy, b, gradient_dtype(0)) : Tensor(),
            wants_gradient(1) ? multiply({f.y, f.a, f.b}, dy, a, gradient_dtype(1)) : Tensor()};
      });
}

}  // namespace ricci
