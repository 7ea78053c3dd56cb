// The classifier with its cross-entropy against the formula in f64, and its chunks of rows: their sums are rounded only at the end.
#include "core/dims.h"
#include "ops/products/products.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Naive {
  double loss = 0, largest = 0;                        // largest |logit|
  Values dx, dw, dbias, dx_size, dw_size, dbias_size;  // with sums of the absolute values of the same terms

  Naive(const Values& x, const Values& w, const Values& bias, const std::vector<int64_t>& targets, size_t d)
      : dx(x.size()), dw(w.size()), dbias(w.size() / d), dx_size(x.size()), dw_size(w.size()), dbias_size(w.size() / d) {
    double counted = 0;
    for (int64_t target : targets) counted += target >= 0;
    for (size_t r = 0; r < targets.size(); ++r)
      if (targets[r] >= 0) one_row(x, w, bias, r, static_cast<size_t>(targets[r]), d, counted);
  }

  void one_row(const Values& x, const Values& w, const Values& bias, size_t r, size_t target, size_t d, double counted) {
    Values p(bias.size());
    double sum = 0;
    for (size_t v = 0; v < p.size(); ++v) {
      double logit = bias[v];
      for (size_t i = 0; i < d; ++i) logit += x[r * d + i] * w[v * d + i];
      largest = std::max(largest, std::abs(logit));
      if (v == target) loss -= logit / counted;
      sum += p[v] = std::exp(logit);
    }
    loss += std::log(sum) / counted;
    for (size_t v = 0; v < p.size(); ++v) {
      const double one = v == target, dl = (p[v] / sum - one) / counted, size = (p[v] / sum + one) / counted;
      dbias[v] += dl, dbias_size[v] += size;
      for (size_t i = 0; i < d; ++i) {
        dx[r * d + i] += dl * w[v * d + i], dx_size[r * d + i] += size * std::abs(w[v * d + i]);
        dw[v * d + i] += dl * x[r * d + i], dw_size[v * d + i] += size * std::abs(x[r * d + i]);
      }
    }
  }
};

struct Outcome {
  double loss;
  Tensor dx, dw, dbias;
};

Outcome run(const Tensor& x, const Tensor& w, const Tensor& bias, const std::vector<int64_t>& targets, double dloss) {
  Tape tape;
  const Tensor wx = tape.watch(x), ww = tape.watch(w), wbias = bias ? tape.watch(bias) : bias;
  const Tensor loss = classifier_loss(wx, ww, wbias, ids_of(targets, {static_cast<int64_t>(targets.size())}, x.device()));
  tape.backward({loss}, {tensor_of({dloss}, {}, Dtype::f64, x.device())});
  return {item(loss), tape.gradient_of(wx), tape.gradient_of(ww), bias ? tape.gradient_of(wbias) : Tensor()};
}

void check(const std::vector<int64_t>& targets, int64_t v, int64_t d, bool with_bias, double dloss, Device device, Dtype dtype) {
  INFO("v ", v, ", dloss ", dloss);
  const int64_t rows = static_cast<int64_t>(targets.size());
  const Tensor x = drawn({rows, d}, dtype, device, 1), w = drawn({v, d}, dtype, device, 2);
  const Tensor bias = with_bias ? drawn({v}, dtype, device, 3) : Tensor();
  Naive naive(values_of(x), values_of(w), with_bias ? values_of(bias) : Values(static_cast<size_t>(v)), targets, static_cast<size_t>(d));
  for (Values* gradient : {&naive.dx, &naive.dw, &naive.dbias})
    for (double& g : *gradient) g *= dloss;
  for (Values* size : {&naive.dx_size, &naive.dw_size, &naive.dbias_size})
    for (double& s : *size) s *= std::abs(dloss);
  // The error of a logit is `unit` of its size, and that is the relative error of its exponential. dl, the gradients and their product with
  // dloss are rounded once more each.
  const double logits = naive.largest * unit(dtype) + static_cast<double>(d + 2) * sum_unit(dtype) * naive.largest;
  const double bound = 2 * logits + 3.1 * unit(dtype) + static_cast<double>(v + rows + 30) * sum_unit(dtype);
  const Outcome got = run(x, w, bias, targets, dloss);
  CHECK(std::abs(got.loss - naive.loss) <= 2 * logits + static_cast<double>(v + 30) * sum_unit(dtype));
  CHECK(error_of(got.dx, naive.dx, naive.dx_size) <= bound);
  CHECK(error_of(got.dw, naive.dw, naive.dw_size) <= bound);
  if (with_bias) CHECK(error_of(got.dbias, naive.dbias, naive.dbias_size) <= bound);
  const Tensor targets_r = ids_of(targets, {rows}, device);
  CHECK(item(classifier_loss(x, w, bias, targets_r)) == got.loss);  // without a tape
}

// Enough columns for chunks of one row of logits.
constexpr int64_t kWide = (1 << 24) + 1;

Tensor column(float value, float last, Dtype dtype) {
  const Tensor t({kWide, 1});
  std::fill_n(t.data<float>(), kWide, value);
  t.data<float>()[kWide - 1] = last;
  return convert(t, dtype);
}

}  // namespace

TEST_CASE("classifier: loss and gradients are the formula's; rows without a target; a loss that is scaled") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (double dloss : {1.0, -2.5})
      for (bool bias : {true, false}) {
        check({3, -1, 0, 10, 3, -1, 7}, 11, 5, bias, dloss, device, dtype);
        check({300, 0}, 301, 4, bias, dloss, device, dtype);
        check({0}, 1, 3, bias, dloss, device, dtype);
        check({5, -1, 7}, 8, 5, bias, dloss, device, dtype);  // rows of full packs of 16 bytes, and below with a rest
        if (dloss == 1) check({4098, 2049}, 4099, 5, bias, dloss, device, dtype);
      }
  });
}

TEST_CASE("classifier: no row with a target, no rows") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const std::vector<int64_t>& targets : {std::vector<int64_t>{-1, -1, -1}, {}}) {
      const int64_t rows = static_cast<int64_t>(targets.size());
      const Outcome got =
          run(drawn({rows, 4}, dtype, device, 1), drawn({6, 4}, dtype, device, 2), drawn({6}, dtype, device, 3), targets, 1);
      CHECK(got.loss == 0);
      for (const Tensor& gradient : {got.dx, got.dw, got.dbias})
        for (double g : values_of(gradient)) CHECK(g == 0);
    }
  });
}

// All logits but the last column's are 0, so every p is 2^-24 and every dl and product is exact: 259 of them add up to 260 after one
// rounding to bf16. Sums that were rounded to bf16 after each chunk would stay at 256.
TEST_CASE("classifier: a chunk for each of four rows: gradients in bf16 are summed in f32, and dx has the row of its chunk") {
  const Tensor x = tensor_of({256, 1, 1, 1}, {4, 1}, Dtype::bf16, Device::cpu), w = column(0, 0x1p-8f, Dtype::bf16);
  const Outcome got = run(x, w, column(0, -8192, Dtype::bf16).reshaped({kWide}), {5, kWide - 1, 5, 5}, 1);
  CHECK(got.loss == doctest::Approx(24 * std::log(2.0) + 2048).epsilon(1e-6));
  CHECK(values_of(got.dx) == Values{0, -0x1p-10, 0, 0});
  CHECK(got.dw.dtype() == Dtype::bf16);
  CHECK(got.dbias.dtype() == Dtype::bf16);
  int64_t wrong = 0;
  for (int64_t v = 0; v < kWide; ++v) {
    const bool is_last = v == kWide - 1;
    const float dw = v == 5 ? -64.5f : is_last ? -0.25f : 260 * 0x1p-26f, dbias = v == 5 ? -0.75f : is_last ? -0.25f : 0x1p-24f;
    wrong += float(got.dw.data<bf16>()[v]) != dw || float(got.dbias.data<bf16>()[v]) != dbias;
  }
  CHECK(wrong == 0);
}

TEST_CASE("classifier: messages") {
  const Tensor x({3, 4}), w({6, 4});
  const auto error = [&](const std::vector<int64_t>& targets) {
    return message_of([&] { classifier_loss(x, w, Tensor(), ids_of(targets, {3}, Device::cpu)); });
  };
  CHECK(error({0, 6, 1}) == "classifier_loss: target 6 at row 1 is outside the vocabulary of 6");
  CHECK(error({0, 1, -2}) == "classifier_loss: target -2 at row 2 is outside the vocabulary of 6");
  on_gpus([](Device device) {
    for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
      const Tensor x = drawn({2, 4}, dtype, device, 1), w = drawn({6, 4}, dtype, device, 2);
      const auto loss = [&](int64_t target) { return item(classifier_loss(x, w, Tensor(), ids_of({0, target}, {2}, device))); };
      for (int64_t outside : {int64_t{6}, int64_t{7}, int64_t{8}, int64_t{1} << 40, int64_t{-2}, int64_t{-100}, INT64_MIN})
        CHECK(std::isnan(loss(outside)));
      for (int64_t inside : {-1, 0, 5}) CHECK(std::isfinite(loss(inside)));
    }
  });
}

TEST_CASE("classifier: only the gradients that are wanted are made and kept, with the same bits") {
  on_every_device_and_dtype([&](Device device, Dtype dtype) {
    const std::vector<int64_t> targets{0, -1, 8, 1, -1, 10};
    const Tensor inputs[] = {drawn({6, 5}, dtype, device, 0), drawn({11, 5}, dtype, device, 1), drawn({11}, dtype, device, 2)};
    const Outcome all = run(inputs[0], inputs[1], inputs[2], targets, 1);
    const Tensor expected[] = {all.dx, all.dw, all.dbias};
    for (int wanted = 1; wanted < 8; ++wanted) {
      Tape tape;
      Tensor in[] = {inputs[0], inputs[1], inputs[2]};
      int64_t bytes = 0;
      for (int i = 0; i < 3; ++i) {
        if (!(wanted >> i & 1)) continue;
        in[i] = tape.watch(in[i]);
        bytes += i == 2 ? in[i].size() * size_of(sums_of(dtype)) : in[i].bytes();
      }
      const Tensor loss = classifier_loss(in[0], in[1], in[2], ids_of(targets, {6}, device));
      CHECK(kept_bytes(tape) == bytes);
      tape.backward(loss);
      CHECK(item(loss) == all.loss);
      for (int i = 0; i < 3; ++i)
        if (wanted >> i & 1) CHECK(same_bits(tape.gradient_of(in[i]), expected[i]));
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
