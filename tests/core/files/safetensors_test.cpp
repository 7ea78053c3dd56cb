// The file format: bytes written here by hand are read, and bytes written by the code are compared with the definition.
#include "core/files/safetensors.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

std::string length_bytes(uint64_t length) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[static_cast<size_t>(i)] = static_cast<char>(length >> (8 * i));
  return bytes;
}

std::string file_of(const std::string& header, size_t data_bytes) {
  std::string data(data_bytes, '\0');
  for (size_t i = 0; i < data_bytes; ++i) data[i] = static_cast<char>(i + 1);
  return length_bytes(header.size()) + header + data;
}

std::string tensor_json(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

template <class T> Tensor tensor_of(const Shape& shape, const std::vector<T>& values) {
  Tensor t(shape, dtype_of<T>);
  REQUIRE(t.size() == static_cast<int64_t>(values.size()));
  if (!values.empty()) std::memcpy(t.raw(), values.data(), values.size() * sizeof(T));
  return t;
}

void check_same(const Tensor& a, const Tensor& b) {
  CHECK(a.dtype() == b.dtype());
  REQUIRE(a.shape() == b.shape());
  if (a.bytes() > 0) CHECK(std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0);
}

std::vector<std::pair<std::string, Tensor>> samples() {
  const float nan = std::bit_cast<float>(0x7fc12345u), inf = std::numeric_limits<float>::infinity();
  std::vector<bf16> halves;
  for (int i = 0; i < 3; ++i) halves.push_back(bf16(1.0f / static_cast<float>(i + 3)));
  return {{"blocks.0.weight", tensor_of<float>({2, 3}, {1.5f, -0.0f, nan, inf, -inf, 1e-45f})},
      {"half", tensor_of<bf16>({3, 1, 1}, halves)}, {"ids", tensor_of<int64_t>({2}, {INT64_MIN, INT64_MAX})},
      {"loss", tensor_of<double>({}, {0.1})}, {"none", tensor_of<float>({0, 5}, {})},
      {"odd \"name\" \n é", tensor_of<double>({1, 1, 1, 1, 1, 1}, {std::nan("7")})}};
}

}  // namespace

TEST_CASE("safetensors: bytes laid out by hand are read") {
  const ScratchFolder folder;
  const std::string header = R"({"b":{"data_offsets":[8,12],"dtype":"F32","shape":[]},"__metadata__":{"k":"v"},)"
                             R"("a":{"dtype":"I64","shape":[1],"data_offsets":[0,8],"extra":1}}   )";
  const std::string data("\x39\x05\0\0\0\0\0\0\0\0\x40\xc0", 12);
  const SafetensorsFile file(folder.write("a", length_bytes(header.size()) + header + data));
  CHECK(file.names() == std::vector<std::string>{"a", "b"});
  CHECK(file.contains("a"));
  CHECK_FALSE(file.contains("__metadata__"));
  CHECK(file.metadata() == Metadata{{"k", "v"}});
  CHECK(file.dtype("a") == Dtype::i64);
  CHECK(file.shape("a") == Shape{1});
  CHECK(file.load("a").data<int64_t>()[0] == 1337);
  CHECK(file.shape("b").rank() == 0);
  CHECK(file.load("b").data<float>()[0] == -3.0f);
  CHECK(file.load("b").device() == Device::cpu);
}

TEST_CASE("safetensors: every dtype comes back bit for bit") {
  const ScratchFolder folder;
  const Metadata metadata{{"format", "pt"}, {"step", "12"}, {"empty", ""}};
  save_safetensors(folder / "a", samples(), metadata);
  const SafetensorsFile file(folder / "a");
  CHECK(file.metadata() == metadata);
  CHECK(file.names().size() == samples().size());
  for (const auto& [each_name, tensor] : samples()) {
    const std::string& name = each_name;
    CAPTURE(name);
    REQUIRE(file.contains(name));
    CHECK(file.shape(name) == tensor.shape());
    CHECK(file.dtype(name) == tensor.dtype());
    check_same(file.load(name), tensor);
  }
}

TEST_CASE("safetensors: the data starts at a multiple of 8 and every tensor is aligned") {
  const ScratchFolder folder;
  std::string name;
  for (int padding = 0; padding < 8; ++padding) {
    name += "x";
    auto tensors = samples();
    tensors.emplace_back(name, tensor_of<bf16>({1}, {bf16(2.0f)}));
    save_safetensors(folder / "a", tensors);
    const std::string bytes = read_file(folder / "a");
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    CHECK(length % 8 == 0);
    CHECK(bytes[8] == '{');
    CHECK(bytes.size() == 8 + length + 6 * 4 + 3 * 2 + 2 * 8 + 8 + 8 + 2);
    const SafetensorsFile file(folder / "a");
    int64_t last = 8;
    for (const std::string& each : file.names()) {
      if (file.shape(each).size() == 0) continue;
      CHECK(size_of(file.dtype(each)) <= last);  // falling sizes from an aligned start
      last = size_of(file.dtype(each));
    }
  }
}

TEST_CASE("safetensors: views are written as what they show; the same input gives the same bytes") {
  const ScratchFolder folder;
  const Tensor all = tensor_of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  save_safetensors(folder / "a", {{"rows", all.rows(1, 2)}, {"flat", all.reshaped({6})}});
  save_safetensors(folder / "b", {{"rows", all.rows(1, 2)}, {"flat", all.reshaped({6})}});
  CHECK(read_file(folder / "a") == read_file(folder / "b"));
  const SafetensorsFile file(folder / "a");
  check_same(file.load("rows"), tensor_of<float>({2, 2}, {3, 4, 5, 6}));
  check_same(file.load("flat"), tensor_of<float>({6}, {1, 2, 3, 4, 5, 6}));
}

TEST_CASE("safetensors: no tensors at all") {
  const ScratchFolder folder;
  save_safetensors(folder / "a", {});
  CHECK(read_file(folder / "a") == length_bytes(8) + "{}      ");
  CHECK(SafetensorsFile(folder / "a").names().empty());
}

TEST_CASE("safetensors: a type that tensors do not have hides only its own tensor") {
  const ScratchFolder folder;
  const std::string header = R"({"mask":)" + tensor_json("BOOL", "[3]", "[4,7]") + R"(,"w":)" + tensor_json("F32", "[1]", "[0,4]") + "}";
  const std::string path = folder.write("a", file_of(header, 7));
  const SafetensorsFile file(path);
  CHECK(file.load("w").size() == 1);
  CHECK(file.shape("mask") == Shape{3});
  CHECK(error_of([&] { file.load("mask"); }) == path + ": tensor 'mask' is BOOL; F32, F64, BF16 and I64 can be loaded");
  CHECK(error_of([&] { file.load("x"); }) == path + ": no tensor 'x'");
  CHECK(error_of([&] { file.shape("x"); }) == path + ": no tensor 'x'");
}

TEST_CASE("safetensors: what cannot be saved leaves the old file") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "old");
  const Tensor t({2});
  CHECK(error_of([&] { save_safetensors(path, {{"w", t}, {"w", t}}); }) == path + ": tensor 'w' is given twice");
  CHECK(error_of([&] { save_safetensors(path, {{"w", Tensor()}}); }) == path + ": tensor 'w' is empty");
  CHECK(error_of([&] { save_safetensors(path, {{"__metadata__", t}}); }) == path + ": a tensor cannot be called '__metadata__'");
  CHECK(error_of([&] { save_safetensors(path, {{"\xff", t}}); }) == path + ": a tensor's name or its metadata is not UTF-8");
  CHECK(error_of([&] { save_safetensors(path, {{"w", t}}, {{"k", "\xff"}}); }) == path + ": a tensor's name or its metadata is not UTF-8");
  CHECK(error_of([&] {
    save_safetensors(path, {{"w", Tensor({2}, Dtype::f32, Device::cuda_emulated)}});
  }) == path + ": tensor 'w' is on cuda_emulated, expected cpu");
  CHECK(read_file(path) == "old");
}

TEST_CASE("safetensors: F16 and BF16 are read as f32") {
  const ScratchFolder folder;
  // Every F16 there is, against the definition.
  std::string data(131072, '\0');
  for (uint32_t i = 0; i < 65536; ++i) data[2 * i] = static_cast<char>(i), data[2 * i + 1] = static_cast<char>(i >> 8);
  const std::string header = R"({"x":)" + tensor_json("F16", "[65536]", "[0,131072]") + "}";
  const SafetensorsFile file(folder.write("f16", length_bytes(header.size()) + header + data));
  const Tensor x = file.load_f32("x");
  int64_t wrong = 0;
  for (uint32_t i = 0; i < 65536; ++i) {
    const int exponent = static_cast<int>(i >> 10 & 31);
    const double fraction = static_cast<double>(i & 1023) / 1024, sign = i >> 15 ? -1 : 1;
    double expected = sign * (exponent ? std::ldexp(1 + fraction, exponent - 15) : std::ldexp(fraction, -14));
    if (exponent == 31) expected = fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
    const auto got = static_cast<double>(x.data<float>()[i]);
    const bool same = std::isnan(expected) ? std::isnan(got) : got == expected && std::signbit(got) == std::signbit(expected);
    wrong += !same;
  }
  CHECK(wrong == 0);

  const std::string path = folder / "others";
  save_safetensors(path, {{"b", tensor_of<bf16>({3}, {bf16(1.5f), bf16(-0.25f), bf16(3e38f)})}, {"f", tensor_of<float>({2}, {7, -1})},
                             {"i", tensor_of<int64_t>({1}, {3})}});
  const SafetensorsFile others(path);
  check_same(others.load_f32("b"), tensor_of<float>({3}, {1.5f, -0.25f, static_cast<float>(bf16(3e38f))}));
  check_same(others.load_f32("f"), tensor_of<float>({2}, {7, -1}));
  CHECK(error_of([&] { others.load_f32("i"); }) == path + ": tensor 'i' is I64; F32, BF16 and F16 can be read as f32");
}
