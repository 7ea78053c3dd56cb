#include "cuda/gemm/cublas/load_cublas.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>

#include "core/error.h"

using namespace ricci;

namespace {

// Sets RICCI_WITHOUT_CUBLAS, or unsets it, for as long as it lives.
class Asked {
 public:
  explicit Asked(const char* value) {
    if (const char* before = std::getenv(kName)) before_ = before;
    value ? ::setenv(kName, value, 1) : ::unsetenv(kName);
  }
  ~Asked() { before_ ? ::setenv(kName, before_->c_str(), 1) : ::unsetenv(kName); }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

 private:
  static constexpr const char* kName = "RICCI_WITHOUT_CUBLAS";
  std::optional<std::string> before_;
};

const std::vector<std::string> kFiles{"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13"};

}  // namespace

TEST_CASE("a missing cuBLASLt is an error of one line that names what was tried and what to do") {
  for (const char* value : {static_cast<const char*>(nullptr), "", "0"}) {
    const Asked asked(value);
    CHECK_THROWS_WITH_AS(load_cublas(kFiles, [](const std::string& file) { return file[0] == '/' ? "lacks cublasLtMatmul" : "not found"; }),
        "gemm: cuBLASLt cannot be loaded; tried libcublasLt.so.13 (not found), /usr/local/cuda/lib64/libcublasLt.so.13 (lacks "
        "cublasLtMatmul); "
        "set LD_LIBRARY_PATH to its folder, or RICCI_WITHOUT_CUBLAS=1 to use our own, slower kernels",
        Error);
  }
}

TEST_CASE("the first file that can be loaded is taken, the others are left alone") {
  const Asked asked(nullptr);
  std::vector<std::string> tried;
  const auto load_from = [&](const std::string& there) {
    tried.clear();
    return load_cublas(kFiles, [&](const std::string& file) {
      tried.push_back(file);
      return file == there ? "" : "not found";
    });
  };
  CHECK(load_from(kFiles[0]));
  CHECK(tried.size() == 1);
  CHECK(load_from(kFiles[1]));
  CHECK(tried == kFiles);
}

TEST_CASE("RICCI_WITHOUT_CUBLAS=1: nothing is loaded, even if it is there") {
  const Asked asked("1");
  CHECK_FALSE(load_cublas(kFiles, [](const std::string&) -> std::string { throw Error("tried to load"); }));
}
