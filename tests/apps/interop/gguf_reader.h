// A reader of GGUF files, independent of their writer: the keys, the tensors and the tokens of a run.
#pragma once
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ricci::apps {

struct GgufTensor {
  std::vector<int64_t> extents;
  int32_t type = -1;
  std::string bytes;  // up to the end of the file
};

struct GgufFile {
  std::map<std::string, std::string> values;  // the type, and the bytes of the value
  std::vector<std::string> order;
  std::map<std::string, GgufTensor> tensors;
};

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  template <class T> T number() {
    T value{};
    REQUIRE(at_ + sizeof value <= bytes_.size());
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string take(size_t count) {
    REQUIRE(at_ + count <= bytes_.size());
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  std::string text() { return take(number<uint64_t>()); }
  std::string value(int32_t type) {
    if (type == 8) return text();
    if (type != 9) return take(type == 7 ? 1 : 4);
    const auto element = number<int32_t>();
    std::string all;
    for (auto left = number<uint64_t>(); left > 0; --left) all += value(element) + (element == 8 ? "\n" : "");
    return all;
  }
  GgufFile file() {
    CHECK(take(4) == "GGUF");
    CHECK(number<uint32_t>() == 3);
    const auto tensors = number<int64_t>(), pairs = number<int64_t>();
    GgufFile read;
    for (int64_t i = 0; i < pairs; ++i) {
      const std::string key = text();
      const auto type = number<int32_t>();
      read.values[key] = std::to_string(type) + ":" + value(type);
    }
    std::map<std::string, uint64_t> places;
    for (int64_t i = 0; i < tensors; ++i) {
      const std::string name = text();
      read.order.push_back(name);
      GgufTensor& tensor = read.tensors[name];
      for (auto left = number<uint32_t>(); left > 0; --left) tensor.extents.push_back(number<int64_t>());
      tensor.type = number<int32_t>();
      places[name] = number<uint64_t>();
      CHECK(places[name] % 32 == 0);
    }
    const size_t data = (at_ + 31) / 32 * 32;
    CHECK(bytes_.size() % 32 == 0);
    for (const auto& [name, place] : places) read.tensors[name].bytes = bytes_.substr(data + place);
    return read;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

template <class T> std::string with_type(int type, T value) {
  return std::to_string(type) + ":" + std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace ricci::apps
