// contract("p,q->o", a, b):  y_o = sum over all indices not in o of a_p b_q
//   da_p = sum of dy_o b_q,   db_q = sum of dy_o a_p          the same contraction with the letters rotated
// A letter in both factors and the result numbers the products of a batch, one in a factor and the result is a row or a
// column, one in both factors alone is summed. Neighbouring letters of a kind that are in memory as one become one extent
// of the matrix product; what is left over is looped. A letter in one factor alone is summed first.
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
  if (comma == text.npos || arrow == text.npos || comma > arrow || text.rfind(',') != comma) fail("contract: '{}' is not 'p,q->o'", {text});
  const Formula f{
      std::string(text.substr(0, comma)), std::string(text.substr(comma + 1, arrow - comma - 1)), std::string(text.substr(arrow + 2))};
  for (const std::string& letters : {f.a, f.b, f.y})
    for (char letter : letters) {
      if (!std::isalpha(static_cast<unsigned char>(letter))) fail("contract: '{}' in '{}' is no index", {letter, text});
      if (std::count(letters.begin(), letters.end(), letter) > 1)
        fail("contract: index {} is twice in '{}' of '{}'", {letter, letters, text});
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
    fail("contract: index {} is {} in a{} but {} in b{} of '{}'",
        {f.a[i], a.shape()[static_cast<int>(i)], show(a.shape()), b.shape()[static_cast<int>(j)], show(b.shape()), f.text()});
  }
}

// One index, or several merged: its extent, and how far apart its elements are in a, b and y (0 where it is not in it).
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

// The indices of one kind in the order of `letters`, merged where all tensors allow it.
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

// Takes the longest index out of the list: the one that becomes an extent of the matrix product.
HOST Index take_longest(std::vector<Index>& list) {
  if (list.empty()) return {};
  const auto longest = std::max_element(list.begin(), list.end(), [](const Index& p, const Index& q) { return p.extent < q.extent; });
  const Index taken = *longest;
  list.erase(longest);
  return taken;
}

HOST Shape shape_of(const Formula& f, const Tensor& a, const Tensor& b) {
  Shape shape;
  for (char letter : f.y) shape.push_back(extent_of(letter, f, a, b));
  return shape;
}

// The product itself, nothing recorded, as `result`: the dtype of the factors, or f32 where they are bf16. Every letter is in at
// least two of the three.
HOST Tensor multiply(const Formula& f, const Tensor& a, const Tensor& b, Dtype result) {
  const Shape shape = shape_of(f, a, b);
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
  // Sums of several products are not rounded in between.
  const bool f32 = a.dtype() == Dtype::bf16 && (result == Dtype::f32 || summed_from < loops.size());
  const Tensor y = like(a, shape, f32 ? Dtype::f32 : a.dtype());
  auto element_of = [&](const Tensor& t, int64_t element) { return static_cast<char*>(t.raw()) + element * size_of(t.dtype()); };
  std::vector<int64_t> count(loops.size(), 0);
  for (bool more = true; more;) {
    int64_t in_a = 0, in_b = 0, in_y = 0;
    bool accumulate = false;
    for (size_t i = 0; i < loops.size(); ++i) {
      in_a += count[i] * loops[i].a;
      in_b += count[i] * loops[i].b;
      in_y += count[i] * loops[i].y;
      accumulate |= i >= summed_from && count[i] > 0;
    }
    // clang-format off
    gemm({.device = a.device(), .dtype = a.dtype(), .batch = indices[batch].extent, .m = indices[row].extent,
          .n = indices[column].extent, .k = indices[sum].extent, .a = element_of(a, in_a), .b = element_of(b, in_b),
          .a_at = {indices[row].a, indices[sum].a, indices[batch].a}, .b_at = {indices[sum].b, indices[column].b, indices[batch].b}, .c = element_of(y, in_y),
          .c_at = {indices[row].y, indices[column].y, indices[batch].y}, .accumulate = accumulate, .c_f32 = f32});
    // clang-format on
    more = false;
    for (size_t i = loops.size(); i-- > 0 && !more;) {
      more = ++count[i] < loops[i].extent;
      if (!more) count[i] = 0;
    }
  }
  return convert(y, result);
}

// Sums a factor over the letters that are in it alone, and takes them out of the formula.
HOST Tensor without_lone(const Tensor& x, std::string& letters, const std::string& other, const std::string& result) {
  Tensor t = x;
  for (size_t i = letters.size(); i-- > 0;) {
    if (has(other, letters[i]) || has(result, letters[i])) continue;
    t = ricci::sum(t, static_cast<int>(i));
    letters.erase(i, 1);
  }
  return t;
}

HOST Tensor record_product(const Formula& f, const Arg& a, const Arg& b) {
  return record("contract", {a, b}, multiply(f, a, b, a.dtype()), keep(a, b, f),
      [](const Tensor& dy, const Tensor& a, const Tensor& b, const Formula& f) -> Grads {
        return {wants_gradient(0) ? multiply({f.y, f.b, f.a}, dy, b, gradient_dtype(0)) : Tensor(),
            wants_gradient(1) ? multiply({f.y, f.a, f.b}, dy, a, gradient_dtype(1)) : Tensor()};
      });
}

}  // namespace contract_details

HOST Tensor contract(std::string_view formula, const Arg& a, const Arg& b) {
  using namespace contract_details;
  DIMS(a, b);
  Formula f = parse(formula);
  check_factors(f, a, b);
  const std::string all_of_a = f.a;
  const Tensor summed_a = without_lone(a, f.a, f.b, f.y), summed_b = without_lone(b, f.b, all_of_a, f.y);
  return record_product(f, Arg(summed_a, a.site), Arg(summed_b, b.site));
}

}  // namespace ricci
