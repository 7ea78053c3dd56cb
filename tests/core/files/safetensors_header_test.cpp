// Headers that break the format: every one is rejected with its own message, in time and memory in proportion to its length.
#include <doctest/doctest.h>

#include "core/files/safetensors.h"
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

// The complaint of opening a file of these bytes, without the path in front.
std::string complaint(const std::string& bytes) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.safetensors", bytes);
  const std::string error = test::bounded_error([&] { SafetensorsFile file(path); });
  CHECK(error.find('\n') == error.npos);
  return error.starts_with(path + ": ") ? error.substr(path.size() + 2) : error;
}

std::string tensor_json(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string one(const std::string& shape, const std::string& offsets, size_t data_bytes = 24) {
  return complaint(file_of(R"({"w":)" + tensor_json("F32", shape, offsets) + "}", data_bytes));
}

}  // namespace

TEST_CASE("safetensors: a file that is not of this format") {
  CHECK(complaint("") == "not a safetensors file: it has 0 bytes, fewer than 8");
  CHECK(complaint("1234567") == "not a safetensors file: it has 7 bytes, fewer than 8");
  CHECK(complaint(length_bytes(100) + "{}") == "cut off: the header has 100 bytes, but only 2 follow its length");
  CHECK(complaint("%PDF-1.7 and so on") == "not a safetensors file: a header of 3976169591536898085 bytes, at most 100000000 are allowed");
  CHECK(
      complaint(std::string(8, '\xff')) == "not a safetensors file: a header of 18446744073709551615 bytes, at most 100000000 are allowed");
  CHECK(complaint(length_bytes(100'000'000)) == "cut off: the header has 100000000 bytes, but only 0 follow its length");
}

TEST_CASE("safetensors: a header that is not a JSON object") {
  CHECK(complaint(file_of("", 0)) == "the header is not JSON: fault at byte 1 of 0");
  CHECK(complaint(file_of(R"({"w":)", 0)) == "the header is not JSON: fault at byte 6 of 5");
  CHECK(complaint(file_of("{\"\xff\":1}", 0)) == "the header is not JSON: fault at byte 3 of 7");
  CHECK(complaint(file_of(std::string("{}\0\0", 4), 0)) == "the header is not JSON: fault at byte 3 of 4");
  CHECK(complaint(file_of("{} x", 0)) == "the header is not JSON: fault at byte 4 of 4");
  for (const char* text : {"7", "null", "\"w\"", "[]", "[{}]"}) CHECK(complaint(file_of(text, 0)) == "the header is not a JSON object");
  CHECK(complaint(file_of(R"({"w":{"shape":[[)" + std::string(100'000, '['), 0)) == "the header is nested too deeply");
  CHECK(complaint(file_of(R"({"w":{"shape":{"a":{}}}})", 0)) == "the header is nested too deeply");
}

TEST_CASE("safetensors: a header takes time and memory in proportion to its length, whatever it holds") {
  constexpr int kTensors = 100'000;
  std::string many = "{";
  for (int i = 0; i < kTensors; ++i)
    many +=
        format_message(R"({}"blocks.{}.weight":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}})", {i ? "," : "", i, i * 4, i * 4 + 4});
  const ScratchFolder folder;
  const std::string path = folder.write("many", file_of(many + "}", kTensors * 4));
  CHECK(test::bounded_error(
            [&] { SafetensorsFile(path).names().size() == kTensors ? void() : fail("some are missing"); }, {.seconds = 1}) == "no error");

  const auto repeated = [](const std::string& text, size_t bytes) {
    std::string all;
    while (all.size() < bytes) all += text;
    return all;
  };
  constexpr size_t large = 2'000'000;
  for (const std::string& text :
      {repeated("[", large), repeated("{\"a\":", large), repeated("\"", large), repeated("{", large), repeated("1", large)}) {
    CHECK(complaint(file_of(text, 0)) != "no error");
    CHECK(complaint(file_of(R"({"w":)" + text, 0)).size() < 300);
    CHECK(complaint(file_of(R"({"w":{"shape":)" + text, 0)).size() < 300);
    CHECK(complaint(file_of(R"({"__metadata__":{"a":)" + text, 0)).size() < 300);
  }
  CHECK(complaint(file_of(R"({"w":{"shape":[)" + repeated("1,", large) + "1]}}", 0)) == R"("w": more than 65536 values)");
  std::string texts;
  for (int i = 0; i < 70'000; ++i) texts += format_message(R"("{}":"",)", {i});
  CHECK(complaint(file_of(R"({"__metadata__":{)" + texts + R"("end":""}})", 0)) == R"("__metadata__": more than 65536 values)");
}

TEST_CASE("safetensors: a hundred thousand tensors are written and found again") {
  const ScratchFolder folder;
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (int i = 0; i < 100'000; ++i) tensors.emplace_back("t" + std::to_string(i), Tensor({1}, Dtype::f32));
  CHECK(test::bounded_error(
            [&] {
              save_safetensors(folder / "a", tensors);
              if (SafetensorsFile(folder / "a").load("t99999").size() != 1) fail("another one");
            },
            {.seconds = 2}) == "no error");
}

TEST_CASE("safetensors: names and keys given twice") {
  const std::string w = tensor_json("F32", "[1]", "[0,4]");
  CHECK(complaint(file_of(R"({"w":)" + w + R"(,"w":)" + w + "}", 4)) == R"(the header has "w" twice)");
  CHECK(complaint(file_of(R"({"w":{"dtype":"F32","dtype":"F64","shape":[1],"data_offsets":[0,8]}})", 8)) ==
        R"(the header has "dtype" twice)");
  CHECK(complaint(file_of(R"({"__metadata__":{"a":"1","a":"2"}})", 0)) == R"(the header has "a" twice)");
}

TEST_CASE("safetensors: malformed entries") {
  CHECK(complaint(file_of(R"({"w":3})", 0)) == R"(tensor "w": expected an object, got 3)");
  CHECK(complaint(file_of(R"({"w":{"shape":[1],"data_offsets":[0,4]}})", 4)) == R"(tensor "w": no dtype)");
  CHECK(complaint(file_of(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", 4)) == R"(tensor "w": no shape)");
  CHECK(complaint(file_of(R"({"w":{"dtype":"F32","shape":[1]}})", 4)) == R"(tensor "w": no data_offsets)");
  CHECK(complaint(file_of(R"({"w":)" + tensor_json("F31", "[1]", "[0,4]") + "}", 4)) == R"(tensor "w": unknown dtype "F31")");
  CHECK(complaint(file_of(R"({"w":{"dtype":5,"shape":[1],"data_offsets":[0,4]}})", 4)) == R"(tensor "w": unknown dtype 5)");
  CHECK(complaint(file_of(R"({"a\nb":3})", 0)) == R"(tensor "a\nb": expected an object, got 3)");
}

TEST_CASE("safetensors: malformed shapes") {
  const std::string range = ", expected an integer from 0 to 2^63 - 1";
  CHECK(one("6", "[0,24]") == R"(tensor "w": shape is 6, expected a list of integers)");
  CHECK(one("[-2,3]", "[0,24]") == R"(tensor "w": shape has -2)" + range);
  CHECK(one("[2.0,3]", "[0,24]") == R"(tensor "w": shape has 2.0)" + range);
  CHECK(one(R"(["2",3])", "[0,24]") == R"(tensor "w": shape has "2")" + range);
  CHECK(one("[true]", "[0,24]") == R"(tensor "w": shape has true)" + range);
  CHECK(one("[9223372036854775808]", "[0,24]") == R"(tensor "w": shape has 9223372036854775808)" + range);
  CHECK(one("[99999999999999999999]", "[0,24]") == R"(tensor "w": shape has 1e+20)" + range);
  CHECK(one("[1e999]", "[0,24]") == "the header has a number beyond the range of f64");
  CHECK(one("[4294967296,4294967296]", "[0,24]") == R"(tensor "w": shape [4294967296, 4294967296] overflows)");
  CHECK(one("[4611686018427387904,4,0]", "[0,0]", 0) == R"(tensor "w": shape [4611686018427387904, 4, 0] overflows)");
  CHECK(one("[9223372036854775807]", "[0,24]") == R"(tensor "w": shape [9223372036854775807] overflows)");
  CHECK(one("[1,1,1,1,1,1,6]", "[0,24]") == R"(tensor "w": shape has 7 extents, at most 6 are supported)");
  CHECK(one("[2,4]", "[0,24]") == R"(tensor "w": F32 of shape [2, 4] takes 32 bytes, but data_offsets has 24)");
  CHECK(one("[]", "[0,24]") == R"(tensor "w": F32 of shape [] takes 4 bytes, but data_offsets has 24)");
  CHECK(one("[6]", "[0,24]") == "no error");
}

TEST_CASE("safetensors: malformed offsets") {
  const std::string two = ", expected two integers", range = ", expected an integer from 0 to 2^63 - 1";
  CHECK(one("[6]", "24") == R"(tensor "w": data_offsets is 24)" + two);
  CHECK(one("[6]", "[24]") == R"(tensor "w": data_offsets is [24])" + two);
  CHECK(one("[6]", "[0,12,24]") == R"(tensor "w": data_offsets is [0,12,24])" + two);
  CHECK(one("[6]", "[-1,23]") == R"(tensor "w": data_offsets has -1)" + range);
  CHECK(one("[6]", "[0,24.5]") == R"(tensor "w": data_offsets has 24.5)" + range);
  CHECK(one("[6]", "[4,28]") == R"(tensor "w": data_offsets is [4,28], outside the 24 bytes of data)");
  CHECK(one("[6]", "[0,9223372036854775807]") == R"(tensor "w": data_offsets is [0,9223372036854775807], outside the 24 bytes of data)");
  CHECK(one("[6]", "[24,0]") == R"(tensor "w": data_offsets is [24,0], outside the 24 bytes of data)");
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
  CHECK(two("[0,8]", "[0,8]", 8) == R"(tensor "b": its data overlaps the data of another tensor)");
  CHECK(two("[4,12]", "[0,8]", 12) == R"(tensor "a": its data overlaps the data of another tensor)");
  CHECK(two("[0,8]", "[12,20]", 20) == "bytes 8 to 12 of the data belong to no tensor");
  CHECK(complaint(file_of(R"({"a":)" + tensor_json("F32", "[0]", "[4,4]") + R"(,"b":)" + tensor_json("F32", "[2]", "[0,8]") + "}", 8)) ==
        R"(tensor "a": its data overlaps the data of another tensor)");
}

TEST_CASE("safetensors: malformed metadata") {
  CHECK(complaint(file_of(R"({"__metadata__":[]})", 0)) == "__metadata__ is [], expected an object");
  CHECK(complaint(file_of(R"({"__metadata__":{"step":3}})", 0)) == R"(__metadata__: "step" is 3, expected a string)");
  CHECK(complaint(file_of(R"({"__metadata__":{"step":null}})", 0)) == R"(__metadata__: "step" is null, expected a string)");
  CHECK(complaint(file_of(
            R"({"__metadata__":)" + std::string(R"(["a long list of values that goes on and on and on for more)") + R"( than a line"]})",
            0)) == R"(__metadata__ is ["a long list of values that goes on and on and on for mo..., expected an object)");
}
