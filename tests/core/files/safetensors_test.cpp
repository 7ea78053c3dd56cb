// The file format: bytes written here by hand are read, written bytes are compared with the definition, headers that break the format are
// rejected with a message each, and checksums notice damage.
#include "core/files/safetensors.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>

#include "core/files/checksum.h"
#include "core/memory/memory.h"
#include "cuda/device/device.h"
#include "tests/bounded.h"
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

template <class T> Tensor make_tensor(const Shape& shape, const std::vector<T>& values) {
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
  return {{"blocks.0.weight", make_tensor<float>({2, 3}, {1.5f, -0.0f, nan, inf, -inf, 1e-45f})},
      {"half", make_tensor<bf16>({3, 1, 1}, halves)}, {"ids", make_tensor<int64_t>({2}, {INT64_MIN, INT64_MAX})},
      {"loss", make_tensor<double>({}, {0.1})}, {"none", make_tensor<float>({0, 5}, {})},
      {"odd \"name\" \n é", make_tensor<double>({1, 1, 1, 1, 1, 1}, {std::nan("7")})}};
}

// The error when a file of these bytes is opened, without the path.
std::string complaint(const std::string& bytes) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.safetensors", bytes);
  const std::string error = test::bounded_error([&] { SafetensorsFile file(path); });
  CHECK(error.find('\n') == error.npos);
  return error.starts_with(path + ": ") ? error.substr(path.size() + 2) : error;
}

std::string one(const std::string& shape, const std::string& offsets, size_t data_bytes = 24) {
  return complaint(file_of(R"({"w":)" + tensor_json("F32", shape, offsets) + "}", data_bytes));
}

std::vector<std::pair<std::string, Tensor>> some_tensors() {
  Tensor w({2, 3}, Dtype::f32), n({2}, Dtype::i64);
  for (int i = 0; i < 6; ++i) w.data<float>()[i] = static_cast<float>(i) - 3.5f;
  n.data<int64_t>()[0] = INT64_MAX, n.data<int64_t>()[1] = -1;
  return {{"w", w}, {"none", Tensor({0, 5}, Dtype::f32)}, {"n", n}};
}

}  // namespace

TEST_CASE("safetensors: bytes laid out by hand are read") {
  const ScratchFolder folder;
  const std::string header = R"({"b":{"data_offsets":[8,12],"dtype":"F32","shape":[]},"__metadata__":{"k":"v"},)"
                             R"("a":{"dtype":"I64","shape":[1],"data_offsets":[0,8],"extra":1}}   )";
  const std::string data("\x39\x05\0\0\0\0\0\0\0\0\x40\xc0", 12);
  const SafetensorsFile file(folder.write("a", length_bytes(header.size()) + header + data));
  CHECK(file.names() == std::vector<std::string>{"a", "b"});
  CHECK(file.metadata() == Metadata{{"k", "v"}});
  CHECK(file.dtype("a") == Dtype::i64);
  CHECK(file.shape("a") == Shape{1});
  CHECK(file.load("a").data<int64_t>()[0] == 1337);
  CHECK(file.load("b").data<float>()[0] == -3.0f);
}

TEST_CASE("safetensors: every dtype comes back bit for bit, from aligned data") {
  const ScratchFolder folder;
  const Metadata metadata{{"format", "pt"}, {"step", "12"}, {"empty", ""}};
  std::string padding;
  for (; padding.size() < 8; padding += "x") {  // for every length of the header
    NamedTensors tensors = samples();
    tensors.emplace_back(padding, make_tensor<bf16>({1}, {bf16(2.0f)}));
    save_safetensors(folder / "a", tensors, metadata);
    const std::string bytes = read_file(folder / "a");
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    CHECK(length % 8 == 0);
    CHECK(bytes.size() == 8 + length + 6 * 4 + 3 * 2 + 2 * 8 + 8 + 8 + 2);
    const SafetensorsFile file(folder / "a");
    for (const auto& [key, text] : metadata) CHECK(file.metadata().at(key) == text);
    CHECK(file.metadata().size() == metadata.size() + 1);  // the checksum
    REQUIRE(file.names().size() == tensors.size());
    for (const auto& [name, tensor] : tensors) check_same(file.load(name), tensor);
    for (size_t k = 1; k < tensors.size(); ++k) CHECK(size_of(file.dtype(file.names()[k])) <= size_of(file.dtype(file.names()[k - 1])));
  }
  save_safetensors(folder / "a", {});
  CHECK(SafetensorsFile(folder / "a").names().empty());
}

TEST_CASE("safetensors: views are written like copies, and equal input gives equal bytes") {
  const ScratchFolder folder;
  const Tensor all = make_tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  save_safetensors(folder / "a", {{"rows", all.rows(1, 2)}, {"flat", all.reshaped({6})}});
  save_safetensors(folder / "b", {{"rows", all.rows(1, 2)}, {"flat", all.reshaped({6})}});
  CHECK(read_file(folder / "a") == read_file(folder / "b"));
  const SafetensorsFile file(folder / "a");
  check_same(file.load("rows"), make_tensor<float>({2, 2}, {3, 4, 5, 6}));
  check_same(file.load("flat"), make_tensor<float>({6}, {1, 2, 3, 4, 5, 6}));
}

TEST_CASE("safetensors: a type that tensors do not have hides only its own tensor") {
  const ScratchFolder folder;
  const std::string header = R"({"mask":)" + tensor_json("BOOL", "[3]", "[4,7]") + R"(,"w":)" + tensor_json("F32", "[1]", "[0,4]") + "}";
  const std::string path = folder.write("a", file_of(header, 7));
  const SafetensorsFile file(path);
  CHECK(file.load("w").size() == 1);
  CHECK(file.shape("mask") == Shape{3});
  CHECK(error_of([&] { file.load("mask"); }) == path + ": tensor 'mask' is BOOL, expected F32, F64, BF16 or I64");
  CHECK(error_of([&] { file.load("x"); }) == path + ": no tensor 'x'");
  CHECK(error_of([&] { file.shape("x"); }) == path + ": no tensor 'x'");
}

TEST_CASE("safetensors: tensors that cannot be saved leave the old file") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", "old");
  const Tensor t({2});
  CHECK(error_of([&] { save_safetensors(path, {{"w", t}, {"w", t}}); }) == path + ": duplicate tensor 'w'");
  CHECK(error_of([&] { save_safetensors(path, {{"w", Tensor()}}); }) == path + ": tensor 'w' is empty");
  CHECK(error_of([&] { save_safetensors(path, {{"__metadata__", t}}); }) == path + ": duplicate tensor '__metadata__'");
  CHECK(error_of([&] { save_safetensors(path, {{"\xff", t}}); }) == path + ": a tensor name or the metadata is not UTF-8");
  CHECK(error_of([&] { save_safetensors(path, {{"w", t}}, {{"k", "\xff"}}); }) == path + ": a tensor name or the metadata is not UTF-8");
  CHECK(error_of([&] {
    save_safetensors(path, {{"w", Tensor({2}, Dtype::f32, Device::cuda_emulated)}});
  }) == path + ": tensor 'w' is on cuda_emulated, expected cpu");
  CHECK(read_file(path) == "old");
}

TEST_CASE("safetensors: F16 and BF16 are read as f32") {
  const ScratchFolder folder;
  // All F16 values, against the definition.
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
  save_safetensors(path, {{"b", make_tensor<bf16>({3}, {bf16(1.5f), bf16(-0.25f), bf16(3e38f)})}, {"f", make_tensor<float>({2}, {7, -1})},
                             {"i", make_tensor<int64_t>({1}, {3})}});
  const SafetensorsFile others(path);
  check_same(others.load_f32("b"), make_tensor<float>({3}, {1.5f, -0.25f, static_cast<float>(bf16(3e38f))}));
  check_same(others.load_f32("f"), make_tensor<float>({2}, {7, -1}));
  CHECK(error_of([&] { others.load_f32("i"); }) == path + ": tensor 'i' is I64, expected F32, BF16 or F16");
}

TEST_CASE("safetensors: a file that is not of this format") {
  CHECK(complaint("") == "is not a safetensors file (it has 0 bytes, expected at least 8)");
  CHECK(complaint("1234567") == "is not a safetensors file (it has 7 bytes, expected at least 8)");
  CHECK(complaint(length_bytes(100) + "{}") == "is cut short; the header has 100 bytes, but the file contains only 2 of them");
  CHECK(complaint("%PDF-1.7 and so on") ==
        "is not a safetensors file (its header has 3976169591536898085 bytes, expected at most 100000000)");
  CHECK(complaint(std::string(8, '\xff')) ==
        "is not a safetensors file (its header has 18446744073709551615 bytes, expected at most 100000000)");
  CHECK(complaint(length_bytes(100'000'000)) == "is cut short; the header has 100000000 bytes, but the file contains only 0 of them");
}

TEST_CASE("safetensors: a header that is not a JSON object") {
  CHECK(complaint(file_of("", 0)) == "the header: invalid JSON at byte 1 of 0");
  CHECK(complaint(file_of(std::string("{}\0\0", 4), 0)) == "the header: invalid JSON at byte 3 of 4");
  for (const char* text : {"7", "null", "\"w\"", "[]", "[{}]"}) CHECK(complaint(file_of(text, 0)) == "the header is not a JSON object");
  const std::string deep = "the header: the JSON is nested more than 3 levels deep";
  CHECK(complaint(file_of(R"({"w":{"shape":[[)" + std::string(100'000, '['), 0)) == deep);
  CHECK(complaint(file_of(R"({"w":{"shape":{"a":{}}}})", 0)) == deep);
}

TEST_CASE("safetensors: any header takes time and memory proportional to its length") {
  constexpr int kTensors = 20'000;
  std::string many = "{";
  for (int i = 0; i < kTensors; ++i)
    many +=
        format_message(R"({}"blocks.{}.weight":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}})", {i ? "," : "", i, i * 4, i * 4 + 4});
  const ScratchFolder folder;
  const std::string path = folder.write("many", file_of(many + "}", kTensors * 4));
  CHECK(test::bounded_error([&] { SafetensorsFile(path).names().size() == kTensors ? void() : fail("some are missing"); },
            {.mebibytes = 64}) == "no error");

  const auto repeated = [](const std::string& text, size_t bytes) {
    std::string all;
    while (all.size() < bytes) all += text;
    return all;
  };
  constexpr size_t large = 200'000;
  for (const std::string text : {"[", "{\"a\":", "\"", "{", "1"})
    for (const std::string start : {"", R"({"w":)", R"({"w":{"shape":)", R"({"__metadata__":{"a":)"}) {
      const std::string error = complaint(file_of(start + repeated(text, large), 0));
      CHECK(error != "no error");
      CHECK(error.size() < 300);
    }
  CHECK(complaint(file_of(R"({"w":{"dtype":"F32","data_offsets":[0,0],"shape":[)" + repeated("1,", large) + "1]}}", 0)) ==
        R"(tensor "w": shape has 100001 numbers, expected at most 6)");
}

TEST_CASE("safetensors: a name given twice") {
  const std::string w = tensor_json("F32", "[1]", "[0,4]");
  CHECK(complaint(file_of(R"({"w":)" + w + R"(,"w":)" + w + "}", 4)) == R"(the header: duplicate key "w" in one object)");
}

TEST_CASE("safetensors: malformed entries") {
  CHECK(complaint(file_of(R"({"w":3})", 0)) == R"(tensor "w": expected an object, got 3)");
  const std::string no_list = "is null, expected a list of integers from 0 to 2^63 - 1";
  CHECK(complaint(file_of(R"({"w":{"shape":[1],"data_offsets":[0,4]}})", 4)) == R"(tensor "w": unknown dtype null)");
  CHECK(complaint(file_of(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", 4)) == R"(tensor "w": shape )" + no_list);
  CHECK(complaint(file_of(R"({"w":{"dtype":"F32","shape":[1]}})", 4)) == R"(tensor "w": data_offsets )" + no_list);
  CHECK(complaint(file_of(R"({"w":)" + tensor_json("F31", "[1]", "[0,4]") + "}", 4)) == R"(tensor "w": unknown dtype "F31")");
  CHECK(complaint(file_of(R"({"w":{"dtype":5,"shape":[1],"data_offsets":[0,4]}})", 4)) == R"(tensor "w": unknown dtype 5)");
  CHECK(complaint(file_of(R"({"a\nb":3})", 0)) == R"(tensor "a\nb": expected an object, got 3)");
}

TEST_CASE("safetensors: malformed shapes") {
  const auto no_list = [](const std::string& shape, const std::string& shown) {
    CHECK(one(shape, "[0,24]") == R"(tensor "w": shape is )" + shown + ", expected a list of integers from 0 to 2^63 - 1");
  };
  for (const std::string shape : {"6", "[-2,3]", "[2.0,3]", R"(["2",3])", "[true]", "[null]"}) no_list(shape, shape);
  no_list("[9223372036854775808]", "[9.223372036854776e+18]");
  no_list("[99999999999999999999]", "[1e+20]");
  CHECK(one("[1e999]", "[0,24]").starts_with("the header: invalid JSON at byte "));
  CHECK(one("[4294967296,4294967296]", "[0,24]") == R"(tensor "w": shape [4294967296,4294967296] overflows 64 bits)");
  CHECK(one("[4611686018427387904,4,0]", "[0,0]", 0) == R"(tensor "w": shape [4611686018427387904,4,0] overflows 64 bits)");
  CHECK(one("[9223372036854775807]", "[0,24]") == R"(tensor "w": shape [9223372036854775807] overflows 64 bits)");
  CHECK(one("[1,1,1,1,1,1,6]", "[0,24]") == R"(tensor "w": shape has 7 numbers, expected at most 6)");
  CHECK(one("[2,4]", "[0,24]") == R"(tensor "w": F32 of shape [2,4] needs 32 bytes, but data_offsets gives 24)");
  CHECK(one("[]", "[0,24]") == R"(tensor "w": F32 of shape [] needs 4 bytes, but data_offsets gives 24)");
  CHECK(one("[6]", "[0,24]") == "no error");
}

TEST_CASE("safetensors: malformed offsets") {
  for (const std::string offsets : {"24", "[-1,23]", "[0,24.5]"})
    CHECK(one("[6]", offsets) == R"(tensor "w": data_offsets is )" + offsets + ", expected a list of integers from 0 to 2^63 - 1");
  for (const std::string offsets : {"[24]", "[0,12,24]", "[4,28]", "[0,9223372036854775807]", "[24,0]"})
    CHECK(one("[6]", offsets) ==
          R"(tensor "w": data_offsets is )" + offsets + ", expected the tensor's start and end in the 24 bytes of data");
}

TEST_CASE("safetensors: data with holes and overlaps") {
  CHECK(one("[6]", "[4,28]", 28) == "bytes 0 to 4 of the data belong to no tensor");
  CHECK(one("[6]", "[0,24]", 29) == "bytes 24 to 29 of the data belong to no tensor");
  CHECK(complaint(file_of("{}", 1)) == "bytes 0 to 1 of the data belong to no tensor");
  const auto two = [](const std::string& a, const std::string& b, size_t bytes) {
    return complaint(file_of(R"({"a":)" + tensor_json("F32", "[2]", a) + R"(,"b":)" + tensor_json("F32", "[2]", b) + "}", bytes));
  };
  CHECK(two("[0,8]", "[8,16]", 16) == "no error");
  CHECK(two("[8,16]", "[0,8]", 16) == "no error");
  CHECK(two("[0,8]", "[0,8]", 8) == R"(the data of tensor "b" overlaps the data of another tensor)");
  CHECK(two("[4,12]", "[0,8]", 12) == R"(the data of tensor "a" overlaps the data of another tensor)");
  CHECK(two("[0,8]", "[12,20]", 20) == "bytes 8 to 12 of the data belong to no tensor");
  CHECK(complaint(file_of(R"({"a":)" + tensor_json("F32", "[0]", "[4,4]") + R"(,"b":)" + tensor_json("F32", "[2]", "[0,8]") + "}", 8)) ==
        R"(the data of tensor "a" overlaps the data of another tensor)");
}

TEST_CASE("safetensors: malformed metadata") {
  const std::string expected = ", expected an object with string members";
  CHECK(complaint(file_of(R"({"__metadata__":[]})", 0)) == "the header: __metadata__: []" + expected);
  CHECK(complaint(file_of(R"({"__metadata__":{"step":3}})", 0)) == R"(the header: __metadata__: {"step":3})" + expected);
}

TEST_CASE("safetensors: the bytes of a file, and their checksum, are these") {
  const ScratchFolder folder;
  save_safetensors(folder / "a", some_tensors(), {{"z", "\"\n\x7f"}, {"format", "ricci"}});
  const std::string header = R"({"__metadata__":{"checksum":"a6db768c92dcaf37","format":"ricci","z":"\"\n)"
                             "\x7f"
                             R"("},"n":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
                             R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]},)"
                             R"("none":{"dtype":"F32","shape":[0,5],"data_offsets":[40,40]}})";
  const std::string numbers("\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff\xff"
                            "\0\0\x60\xc0\0\0\x20\xc0\0\0\xc0\xbf\0\0\0\xbf\0\0\0\x3f\0\0\xc0\x3f",
      40);
  CHECK(read_file(folder / "a") == length_bytes(header.size()) + header + numbers);
}

TEST_CASE("safetensors: a checksum notices every damaged byte, and a file without one") {
  const ScratchFolder folder;
  const std::string path = folder / "a.safetensors";
  save_safetensors(path, some_tensors(), {{"step", "12"}, {"z", "\"checksum\":\"0000000000000000\""}});
  const std::string sound = read_file(path);
  const SafetensorsFile file(path);
  file.verify();
  CHECK(file.metadata().at("step") == "12");
  CHECK(file.metadata().at("checksum") != "0000000000000000");
  CHECK(file.load("w").data<float>()[5] == 1.5f);

  for (size_t i = 0; i < sound.size(); ++i) {
    std::string damaged = sound;
    damaged[i] = static_cast<char>(sound[i] ^ (i % 2 ? 1 : 0x80));
    folder.write("b.safetensors", damaged);
    CHECK(error_of([&] { SafetensorsFile(folder / "b.safetensors").verify(); }) != "no error");
  }
  std::string last = sound;
  last.back() = static_cast<char>(last.back() ^ 1);
  CHECK(error_of([&] { SafetensorsFile(folder.write("b.safetensors", last)).verify(); }) ==
        folder / "b.safetensors" + ": damaged: its bytes do not match its checksum");
  for (const std::string metadata : {"", R"("__metadata__":{"checksum":"short"},)",
           R"("__metadata__":{"checksum":"0123456789abcdef0123456789abcdef"},)", R"("__metadata__":{"checksum": "0123456789abcdef"},)"}) {
    folder.write("b.safetensors", file_of("{" + metadata + R"("w":)" + tensor_json("F32", "[1]", "[0,4]") + "}", 4));
    const SafetensorsFile foreign(folder / "b.safetensors");
    CHECK_FALSE(foreign.verify_if_checked());
    CHECK(error_of([&] { foreign.verify(); }) == folder / "b.safetensors" + ": has no checksum");
  }
}

TEST_CASE("safetensors: a file that is cut short or overwritten while it is open") {
  const ScratchFolder folder;
  const std::string path = folder / "a.safetensors";
  save_safetensors(path, some_tensors());
  const std::string sound = read_file(path), error = path + ": the file was cut short during reading";
  const SafetensorsFile file(path);
  CHECK_NOTHROW(file.verify());
  for (const size_t bytes : {sound.size() - 1, sound.size() - 30, size_t{0}}) {
    std::filesystem::resize_file(path, bytes);
    CHECK(error_of([&] { file.verify(); }) == error);
    CHECK(error_of([&] { file.load("w"); }) == error);
    CHECK(error_of([&] { file.load_f32("w"); }) == error);
  }
  folder.write("a.safetensors", std::string(sound.size(), 'x'));
  CHECK(error_of([&] { file.verify(); }) == path + ": has no checksum");
}

TEST_CASE("safetensors: tensors on a device are copied to the CPU one at a time, and give the same file") {
  const ScratchFolder folder;
  save_safetensors(folder / "a", some_tensors());
  const auto copy_to = [](Device device, const Tensor& t) {
    const Tensor on_device(t.shape(), t.dtype(), device);
    copy(on_device, t);
    return on_device;
  };
  NamedTensors on_device;
  for (const auto& [name, tensor] : some_tensors()) on_device.emplace_back(name, copy_to(Device::cuda_emulated, tensor));
  const int64_t before = memory_use(Device::cpu).current;
  size_t copies = 0;
  save_safetensors(folder / "b", on_device, {}, [&](const Tensor& t) {
    CHECK(memory_use(Device::cpu).current == before);
    ++copies;
    return copy_to(Device::cpu, t);
  });
  CHECK(read_file(folder / "a") == read_file(folder / "b"));
  CHECK(copies == on_device.size());
}

TEST_CASE("xxh64: the values of the reference implementation") {
  CHECK(xxh64("") == 0xef46db3751d8e999u);
  CHECK(xxh64("abc") == 0x44bc2cf5ad770999u);
  std::string bytes(200, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i * 7 + i * 13 + 5);
  struct Case {
    size_t length;
    uint64_t seed, hash;
  };
  for (const Case& c : {Case{1, 0, 0x50ff15a81340970fu}, {3, 7, 0xbbdba65e54839df1u}, {4, 0, 0x56ad15c35c9774fdu},
           {7, 0x9e3779b185ebca87u, 0xcb8b8825798d19bbu}, {8, 0, 0x8e94d1fc5ae68313u}, {12, 1, 0x53d7847abde87a48u},
           {15, 0, 0x477c43cf9858c4dbu}, {31, 0, 0x18e187606ddc662cu}, {32, 0, 0xfb5a878e50332551u}, {33, 2, 0xfc5824d3c03ce6a7u},
           {63, 0, 0xb9a05dbdec8770deu}, {64, 0xffffffffffffffffu, 0x2da0220e26bf836cu}, {100, 0, 0xf38896434bdcd7acu},
           {200, 0x9e3779b185ebca87u, 0x80b459a2d3512a10u}}) {
    CHECK(xxh64(std::string_view(bytes).substr(0, c.length), c.seed) == c.hash);
  }
}
