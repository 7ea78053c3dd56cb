#include "core/dims.h"
#include "ops/products/products.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// Every third row has no target.
Tensor targets(int64_t rows, int64_t vocabulary, Device device) {
  std::vector<int64_t> of_row;
  for (int64_t r = 0; r < rows; ++r) of_row.push_back(r % 3 == 1 ? -1 : r * 37 % vocabulary);
  if (rows > 1) of_row.back() = vocabulary - 1;
  return ids_of(of_row, {rows}, device);
}

// The loss and the gradients of x, w and, where there is one, the bias; values of `dtype`, computed with in `precision`.
std::vector<Tensor> results(int64_t rows, int64_t vocabulary, int64_t d, bool biased, Dtype dtype, Dtype precision, Device device) {
  Tape tape;
  std::vector<Tensor> in;
  for (const Shape& shape : {Shape{rows, d}, Shape{vocabulary, d}, Shape{vocabulary}})
    if (biased || shape.rank() == 2) in.push_back(tape.watch(convert(drawn(shape, dtype, device, in.size()), precision)));
  const Tensor loss = classifier_loss(in[0], in[1], biased ? in[2] : Tensor(), targets(rows, vocabulary, device));
  tape.backward(loss);
  std::vector<Tensor> all{loss.detached()};
  for (const Tensor& t : in) all.push_back(tape.gradient_of(t));
  return all;
}

}  // namespace

TEST_CASE("classifier: on a GPU as exact as on the CPU, whatever the vocabulary is a multiple of") {
  for (int64_t vocabulary : {2, 7, 8, 131, 4099})
    for (bool biased : {false, true})
      on_every_device_and_dtype([&](Device device, Dtype dtype) {
        if (device == Device::cpu) return;
        CAPTURE(vocabulary);
        CAPTURE(biased);
        constexpr int64_t kRows = 6, kWidth = 5;
        const auto got = results(kRows, vocabulary, kWidth, biased, dtype, dtype, device);
        const auto on_cpu = results(kRows, vocabulary, kWidth, biased, dtype, dtype, Device::cpu);
        const auto exact = results(kRows, vocabulary, kWidth, biased, dtype, Dtype::f64, Device::cpu);
        REQUIRE(got.size() == exact.size());
        for (size_t i = 0; i < got.size(); ++i) {
          CAPTURE(i);
          CHECK(got[i].shape() == exact[i].shape());
          // The bound where the CPU happens to be exact: a rounding of each logit, and of the sum's terms.
          const double least = 4 * unit(dtype) + static_cast<double>(vocabulary) * sum_unit(dtype);
          CHECK(error_of(got[i], values_of(exact[i])) <= std::max(2 * error_of(on_cpu[i], values_of(exact[i])), least));
        }
      });
}

TEST_CASE("classifier: only the gradients that somebody wants are made and kept, with the same bits") {
  constexpr int64_t kRows = 6, kVocabulary = 11, kWidth = 5;
  on_every_device_and_dtype([&](Device device, Dtype dtype) {
    const auto all = results(kRows, kVocabulary, kWidth, true, dtype, dtype, device);
    for (int wanted = 1; wanted < 8; ++wanted) {
      Tape tape;
      std::vector<Tensor> in;
      for (const Shape& shape : {Shape{kRows, kWidth}, Shape{kVocabulary, kWidth}, Shape{kVocabulary}})
        in.push_back(drawn(shape, dtype, device, in.size()));
      int64_t bytes = 0;
      for (size_t i = 0; i < 3; ++i) {
        if (!(wanted >> i & 1)) continue;
        in[i] = tape.watch(in[i]);
        bytes += i == 2 ? in[i].size() * size_of(sums_of(dtype)) : in[i].bytes();
      }
      const Tensor loss = classifier_loss(in[0], in[1], in[2], targets(kRows, kVocabulary, device));
      CHECK(tape.kept_bytes() == bytes);
      tape.backward(loss);
      CHECK(same_bits(loss, all[0]));
      for (size_t i = 0; i < 3; ++i)
        if (wanted >> i & 1) CHECK(same_bits(tape.gradient_of(in[i]), all[i + 1]));
    }
  });
}

TEST_CASE("classifier: rows without target have no gradient, logits far apart no overflow, a NaN stays") {
  for (int64_t vocabulary : {3, 8, 2051})
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      CAPTURE(vocabulary);
      // The logits of row r are x_r times 0, 1, 2, ... mod 3.
      Values w;
      for (int64_t v = 0; v < vocabulary; ++v) w.push_back(static_cast<double>(v % 3));
      const Tensor targets_r = ids_of({0, -1, vocabulary - 1}, {3}, device), w_vd = tensor_of(w, {vocabulary, 1}, dtype, device);
      const auto of = [&](const Values& x) {
        Tape tape;
        const Tensor x_rd = tape.watch(tensor_of(x, {3, 1}, dtype, device));
        const Tensor loss = classifier_loss(x_rd, w_vd, Tensor(), targets_r);
        tape.backward(loss);
        Values all = values_of(tape.gradient_of(x_rd));
        all.push_back(item(loss));
        return all;
      };
      const Values far = of({-20000, 5, -30000});
      CHECK(far[1] == 0);
      for (double value : far) CHECK(std::isfinite(value));
      CHECK(std::isnan(of({1, NAN, 2})[1]) == false);
      CHECK(std::isnan(of({1, 0, NAN})[3]));
    });
}
