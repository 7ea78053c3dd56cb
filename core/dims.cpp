#include "core/dims.h"

#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace ricci {
namespace {

// One index of a suffix: a letter, or a fixed extent.
struct Index {
  char letter = 0;
  int64_t fixed = 0;
};

std::vector<Index> parse_suffix(std::string_view name) {
  const size_t underscore = name.rfind('_');
  std::vector<Index> indices;
  if (underscore == name.npos) return indices;
  for (size_t i = underscore + 1; i < name.size(); ++i) {
    if (!std::isdigit(static_cast<unsigned char>(name[i]))) {
      indices.push_back({name[i], 0});
      continue;
    }
    const bool continues = i > underscore + 1 && std::isdigit(static_cast<unsigned char>(name[i - 1]));
    if (!continues) indices.push_back({0, 0});
    indices.back().fixed = indices.back().fixed * 10 + (name[i] - '0');
  }
  return indices;
}

std::string show(std::string_view name, const Tensor& t) { return std::string(name) + ricci::show(t.shape()); }

std::string_view take_name(std::string_view& rest) {
  const size_t comma = rest.find(',');
  std::string_view name = rest.substr(0, comma);
  rest = comma == rest.npos ? "" : rest.substr(comma + 1);
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  return name;
}

}  // namespace

std::string show(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i ? " " : "") + std::to_string(shape[i]);
  return text + "]";
}

void Dims::bind(const char* op, const char* names, std::initializer_list<const Tensor*> tensors) {
  struct Owner {
    std::string_view name;
    const Tensor* tensor = nullptr;
  };
  std::array<Owner, 128> owners;
  std::string_view rest = names;
  for (const Tensor* t : tensors) {
    const std::string_view name = take_name(rest);
    const auto indices = parse_suffix(name);
    if (!*t) fail("{}: {} is empty", {op, name});
    if (static_cast<int>(indices.size()) != t->shape().rank())
      fail("{}: {} does not have the indices '{}'", {op, show(name, *t), name.substr(name.rfind('_') + 1)});
    for (int i = 0; i < t->shape().rank(); ++i) {
      const auto [letter, fixed] = indices[static_cast<size_t>(i)];
      const int64_t extent = t->shape()[i];
      if (!letter && extent != fixed) fail("{}: index {} of {} must be {}", {op, i, show(name, *t), fixed});
      if (!letter) continue;
      Owner& owner = owners[static_cast<size_t>(letter)];
      int64_t& bound = extent_[static_cast<int>(letter)];
      if (owner.tensor && bound != extent)
        fail("{}: index {} is {} in {} but {} in {}", {op, letter, bound, show(owner.name, *owner.tensor), extent, show(name, *t)});
      if (!owner.tensor) owner = {name, t};
      bound = extent;
    }
  }
}

}  // namespace ricci
