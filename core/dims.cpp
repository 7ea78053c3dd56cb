// Reads the index letters from the text of DIMS's arguments and checks each input against the earlier inputs.
#include "core/dims.h"

#include <string_view>

#include "core/error.h"

namespace ricci {
namespace {

constexpr int kMaxInputs = 8;

// One index of a suffix: a letter, or a fixed extent.
struct Index {
  char letter = 0;
  int64_t fixed = 0;
};

// Removes the first index of a nonempty suffix.
Index take_index(std::string_view& suffix) {
  Index index;
  size_t digits = 0;
  for (; digits < suffix.size() && suffix[digits] >= '0' && suffix[digits] <= '9'; ++digits)
    index.fixed = index.fixed * 10 + (suffix[digits] - '0');
  if (digits == 0) index.letter = suffix[0];
  suffix.remove_prefix(digits == 0 ? 1 : digits);
  return index;
}

// Removes and returns the first name, such as "x_rd" of "merged(x_rd), w_fd".
std::string_view take_name(std::string_view& rest) {
  const size_t comma = rest.find(',');
  std::string_view name = rest.substr(0, comma);
  rest = comma == rest.npos ? "" : rest.substr(comma + 1);
  if (const size_t open = name.rfind('('); open != name.npos) name = name.substr(open + 1, name.find(')') - open - 1);
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  return name;
}

// The shape with its leading indices merged until `rank` indices are left.
Shape merged_to(int rank, const Shape& shape) {
  if (shape.rank() + 1 < rank) return shape;  // the rank is too small: check_rank reports it
  const int together = shape.rank() - rank + 1;
  Shape merged{1};
  for (int i = 0; i < shape.rank(); ++i) i < together ? merged.set(0, merged[0] * shape[i]) : merged.push_back(shape[i]);
  return merged;
}

// An input: its name, the indices of its suffix, and its shape with merged indices.
struct Named {
  std::string_view name, suffix;
  const DimsInput* input = nullptr;
  Index indices[Shape::kMaxRank + 1] = {};
  int count = 0;
  Shape shape;

  Named() = default;
  Named(std::string_view name_, const DimsInput& input_) : name(name_), input(&input_), shape(input_.tensor->shape()) {
    if (const size_t line = name.rfind('_'); line != name.npos) suffix = name.substr(line + 1);
    for (std::string_view rest = suffix; !rest.empty() && count <= Shape::kMaxRank; ++count) indices[count] = take_index(rest);
    if (input->merges) shape = merged_to(count, shape);
  }
  const Tensor& tensor() const { return *input->tensor; }
  bool floating() const { return input->elements == DimsInput::Elements::floating; }
  std::string show() const { return std::string(name) + ricci::show(shape); }
};

void check_elements(const char* op, const Named& next) {
  const bool i64 = next.tensor().dtype() == Dtype::i64;
  if (next.floating() && i64) fail("{}: {} is i64, expected f32, f64 or bf16", {op, next.show()});
  if (next.input->elements == DimsInput::Elements::i64 && !i64)
    fail("{}: {} is {}, expected i64", {op, next.show(), name_of(next.tensor().dtype())});
}

void check_rank(const char* op, const Named& next) {
  const bool has_suffix = next.name.find('_') != next.name.npos;
  if (has_suffix && next.count != next.shape.rank()) fail("{}: {} does not have the indices '{}'", {op, next.show(), next.suffix});
}

void check_together(const char* op, const Named& one, const Named& next) {
  const Tensor &a = one.tensor(), &b = next.tensor();
  if (a.device() == b.device() && (a.dtype() == b.dtype() || !one.floating() || !next.floating())) return;
  fail("{}: {} is {} on {}, but {} is {} on {}",
      {op, one.name, name_of(a.dtype()), name_of(a.device()), next.name, name_of(b.dtype()), name_of(b.device())});
}

// Checks index d of `one` and index e of `next`, two indices with the same letter.
void check_index(const char* op, const Named& one, int d, const Named& next, int e) {
  const char letter = next.indices[e].letter;
  if (one.shape[d] != next.shape[e])
    fail("{}: index {} is {} in {} but {} in {}", {op, letter, one.shape[d], one.show(), next.shape[e], next.show()});
  if (d > 0 || e > 0 || !one.input->merges || !next.input->merges) return;
  const Shape &a = one.tensor().shape(), &b = next.tensor().shape();
  const int leading = a.rank() - one.count + 1;
  bool are_same = leading == b.rank() - next.count + 1;
  for (int i = 0; are_same && i < leading; ++i) are_same = a[i] == b[i];
  if (!are_same) fail("{}: {}{} and {}{} differ in the indices merged into {}", {op, one.name, show(a), next.name, show(b), letter});
}

}  // namespace

std::string show(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i ? " " : "") + std::to_string(shape[i]);
  return text + "]";
}

void Dims::bind(const char* op, const char* names, std::initializer_list<DimsInput> inputs) {
  Named seen[kMaxInputs];
  int count = 0;
  std::string_view rest = names;
  for (const DimsInput& input : inputs) {
    const Named next(take_name(rest), input);
    if (!next.tensor() && input.may_be_empty) continue;
    if (!next.tensor()) fail("{}: {} is empty", {op, next.name});
    if (count == kMaxInputs) fail("{}: more than {} inputs", {op, kMaxInputs});
    check_elements(op, next);
    check_rank(op, next);
    for (int i = 0; i < count; ++i) check_together(op, seen[i], next);
    seen[count++] = next;
    for (int e = 0; e < next.count; ++e) {
      const Index& index = next.indices[e];
      if (!index.letter && next.shape[e] != index.fixed) fail("{}: index {} of {} must be {}", {op, e, next.show(), index.fixed});
      if (!index.letter) continue;
      extent_[static_cast<int>(index.letter)] = next.shape[e];
      for (int i = 0; i < count; ++i)
        for (int d = 0; d < seen[i].count; ++d)
          if (seen[i].indices[d].letter == index.letter) check_index(op, seen[i], d, next, e);
    }
  }
}

}  // namespace ricci
