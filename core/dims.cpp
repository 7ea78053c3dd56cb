#include "core/dims.h"

#include <string_view>

#include "core/error.h"

namespace ricci {
namespace {

// An input with its name and the shape that its suffix speaks of.
struct Named {
  std::string_view name;
  const DimsInput* input;
  Shape shape;

  const Tensor& tensor() const { return *input->tensor; }
  bool floating() const { return input->elements == DimsInput::Elements::floating; }
  bool has_suffix() const { return name.find('_') != name.npos; }
  std::string_view suffix() const { return has_suffix() ? name.substr(name.rfind('_') + 1) : std::string_view(); }
  std::string show() const { return std::string(name) + ricci::show(shape); }
};

// One index of a suffix: a letter, or a fixed extent.
struct Index {
  char letter = 0;
  int64_t fixed = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the first index off a suffix that is not empty.
Index take_index(std::string_view& suffix) {
  Index index;
  size_t used = 0;
  for (; used < suffix.size() && is_digit(suffix[used]); ++used) index.fixed = index.fixed * 10 + (suffix[used] - '0');
  if (used == 0) index.letter = suffix[used++];
  suffix.remove_prefix(used);
  return index;
}

// Takes the first name off "merged(x_rd), w_fd": "x_rd".
std::string_view take_name(std::string_view& rest) {
  const size_t comma = rest.find(',');
  std::string_view name = rest.substr(0, comma);
  rest = comma == rest.npos ? "" : rest.substr(comma + 1);
  if (const size_t open = name.rfind('('); open != name.npos) name = name.substr(open + 1, name.find(')') - open - 1);
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  return name;
}

int count_indices(std::string_view suffix) {
  int indices = 0;
  for (; !suffix.empty(); ++indices) take_index(suffix);
  return indices;
}

// The shape with its leading indices merged until `rank` indices are left.
Shape merged_to(int rank, const Shape& shape) {
  if (shape.rank() + 1 < rank) return shape;  // the rank is too small: check_rank reports it
  const int together = shape.rank() - rank + 1;
  Shape merged{1};
  for (int i = 0; i < shape.rank(); ++i) i < together ? merged.set(0, merged[0] * shape[i]) : merged.push_back(shape[i]);
  return merged;
}

// True where all indices are equal but the innermost ones: own_a of a and own_b of b.
bool same_leading(const Shape& a, int own_a, const Shape& b, int own_b) {
  const int leading = a.rank() - own_a;
  if (leading != b.rank() - own_b) return false;
  for (int i = 0; i < leading; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

// Checks the inputs of one op, one after the other.
class Binder {
 public:
  Binder(const char* op, int64_t (&extents)[128]) : op_(op), extent_(extents) {}

  void add(const Named& next) {
    if (!next.tensor() && next.input->may_be_empty) return;
    if (!next.tensor()) fail("{}: {} is empty", {op_, next.name});
    if (count_ == kMax) fail("{}: more than {} inputs", {op_, kMax});
    check_elements(next);
    check_rank(next);
    for (int i = 0; i < count_; ++i) check_together(seen_[i], next);
    seen_[count_++] = next;
    std::string_view suffix = next.suffix();
    for (int i = 0; !suffix.empty(); ++i) bind_index(take_index(suffix), i, next);
  }

 private:
  static constexpr int kMax = 8;

  void check_elements(const Named& next) const {
    const bool i64 = next.tensor().dtype() == Dtype::i64;
    if (next.floating() && i64) fail("{}: {} is i64, expected f32, f64 or bf16", {op_, next.show()});
    if (next.input->elements == DimsInput::Elements::i64 && !i64)
      fail("{}: {} is {}, expected i64", {op_, next.show(), name_of(next.tensor().dtype())});
  }

  void check_together(const Named& one, const Named& next) const {
    const Tensor &a = one.tensor(), &b = next.tensor();
    if (a.device() == b.device() && (a.dtype() == b.dtype() || !one.floating() || !next.floating())) return;
    fail("{}: {} is {} on {}, {} {} on {}",
        {op_, one.name, name_of(a.dtype()), name_of(a.device()), next.name, name_of(b.dtype()), name_of(b.device())});
  }

  void check_rank(const Named& next) const {
    if (!next.has_suffix()) return;
    if (count_indices(next.suffix()) != next.shape.rank()) fail("{}: {} does not have the indices '{}'", {op_, next.show(), next.suffix()});
  }

  void bind_index(const Index& index, int place, const Named& next) {
    const int64_t extent = next.shape[place];
    if (!index.letter && extent != index.fixed) fail("{}: index {} of {} must be {}", {op_, place, next.show(), index.fixed});
    if (!index.letter) return;
    extent_[static_cast<int>(index.letter)] = extent;
    for (int i = 0; i < count_; ++i) {
      std::string_view suffix = seen_[i].suffix();
      for (int d = 0; !suffix.empty(); ++d)
        if (take_index(suffix).letter == index.letter) check_index(index.letter, seen_[i], d, next, place);
    }
  }

  // Index d of `one` and index e of `next` are called by one letter.
  void check_index(char letter, const Named& one, int d, const Named& next, int e) const {
    if (one.shape[d] != next.shape[e])
      fail("{}: index {} is {} in {} but {} in {}", {op_, letter, one.shape[d], one.show(), next.shape[e], next.show()});
    const Shape &a = one.tensor().shape(), &b = next.tensor().shape();
    if (d == 0 && e == 0 && one.input->merges && next.input->merges && !same_leading(a, one.shape.rank() - 1, b, next.shape.rank() - 1))
      fail("{}: {}{} and {}{} differ in the indices merged into {}", {op_, one.name, ricci::show(a), next.name, ricci::show(b), letter});
  }

  const char* op_;
  int64_t (&extent_)[128];
  Named seen_[kMax];
  int count_ = 0;
};

}  // namespace

std::string show(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i ? " " : "") + std::to_string(shape[i]);
  return text + "]";
}

void Dims::bind(const char* op, const char* names, std::initializer_list<DimsInput> inputs) {
  Binder binder(op, extent_);
  std::string_view rest = names;
  for (const DimsInput& input : inputs) {
    Named next{take_name(rest), &input, input.tensor->shape()};
    if (input.merges) next.shape = merged_to(count_indices(next.suffix()), next.shape);
    binder.add(next);
  }
}

}  // namespace ricci
