#include "ops/embedding/embedding.h"

#include <numeric>

#include "ops/embedding/row_buckets.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

std::vector<int64_t> drawn_ids(int64_t n, int64_t vocabulary, uint64_t stream) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < n; ++i) {  // small ids are frequent, as in text
    const double u = Philox{3, stream}.uniform_f64(static_cast<uint64_t>(i));
    ids.push_back(std::min(vocabulary - 1, static_cast<int64_t>(u * u * u * static_cast<double>(vocabulary))));
  }
  return ids;
}

struct Sizes {
  int64_t b, c, d, v, context, first;
};
const Sizes sizes[] = {{2, 5, 7, 11, 8, 3}, {1, 1, 1, 1, 1, 0}, {3, 37, 65, 300, 37, 0}, {2, 9, 300, 3, 9, 0}, {4, 150, 3, 70001, 200, 50},
    {0, 4, 3, 5, 4, 0}, {2, 3, 130, 6, 3, 0}, {2, 5, 1100, 4, 5, 0}, {2, 20, 264, 9, 21, 1}};

}  // namespace

TEST_CASE("embedding: values and gradients, with and without positions") {
  for (const Sizes& s : sizes) {
    const std::vector<int64_t> ids = drawn_ids(s.b * s.c, s.v, 1);
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor ids_bc = ids_of(ids, {s.b, s.c}, device), table_vd = drawn({s.v, s.d}, dtype, device, 2);
      const Tensor positions_Cd = drawn({s.context, s.d}, dtype, device, 3), dy_bcd = drawn({s.b, s.c, s.d}, dtype, device, 4);
      const Values table = values_of(table_vd), positions = values_of(positions_Cd), dy = values_of(dy_bcd);
      const double scale = 2.5;
      Values y, plain, dtable(table.size()), dtable_size(table.size()), dpositions(positions.size()), dpositions_size(positions.size());
      for (int64_t i = 0; i < dy_bcd.size(); ++i) {
        const int64_t row = i / s.d, d = i % s.d;
        const auto in_table = static_cast<size_t>(ids[static_cast<size_t>(row)] * s.d + d),
                   in_positions = static_cast<size_t>((s.first + row % s.c) * s.d + d);
        plain.push_back(scale * table[in_table]);
        y.push_back(plain.back() + positions[in_positions]);
        const double g = dy[static_cast<size_t>(i)];
        dtable[in_table] += scale * g, dtable_size[in_table] += scale * std::abs(g);
        dpositions[in_positions] += g, dpositions_size[in_positions] += std::abs(g);
      }
      CHECK(error_of(embedding(ids_bc, table_vd, Tensor(), scale), plain) <= unit(dtype));
      CHECK(error_of(embedding(ids_bc, table_vd, positions_Cd, scale, s.first), y) <= unit(dtype) + 2 * sum_unit(dtype));
      const auto grads = gradients_of(
          [&](const std::vector<Tensor>& in) { return embedding(ids_bc, in[0], in[1], scale, s.first); }, {table_vd, positions_Cd}, dy_bcd);
      const double terms = static_cast<double>(s.b * s.c);
      CHECK(error_of(grads[0], dtable, dtable_size) <= 2 * unit(dtype) + terms * sum_unit(dtype));
      CHECK(error_of(grads[1], dpositions, dpositions_size) <= unit(dtype) + terms * sum_unit(dtype));
    });
  }
}

TEST_CASE("embedding: gradients have the same bits for any number of threads, on every device") {
  const std::vector<int64_t> ids = drawn_ids(3 * 211, 500, 5);
  const auto gradients = [&](Device device) {
    const Tensor ids_bc = ids_of(ids, {3, 211}, device), dy_bcd = drawn({3, 211, 67}, Dtype::f32, device, 6);
    const auto f = [&](const std::vector<Tensor>& in) { return embedding(ids_bc, in[0], in[1], 3.0); };
    return gradients_of(f, {drawn({500, 67}, Dtype::f32, device, 7), drawn({211, 67}, Dtype::f32, device, 8)}, dy_bcd);
  };
  check_threads([&] { return gradients(Device::cpu); });
  const std::vector<Tensor> expected = gradients(Device::cpu);
  on_gpus([&](Device device) {
    const std::vector<Tensor> got = gradients(device);
    for (size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
  });
}

TEST_CASE("embedding: fixed positions, and a table that is not trained") {
  const Tensor ids_bc = ids_of({1, 0}, {1, 2}, Device::cpu);
  const Parameter table{drawn({3, 4}, Dtype::f32, Device::cpu, 1), {}, "tok"},
      positions{drawn({2, 4}, Dtype::f32, Device::cpu, 2), {}, "pos"};
  const Tensor dy = drawn({1, 2, 4}, Dtype::f32, Device::cpu, 3);
  const auto run = [&](const auto& table_vd, const auto& positions_Cd) {  // parameters become leaves while a tape records
    Tape tape;
    tape.backward({embedding(ids_bc, table_vd, positions_Cd)}, {dy});
  };
  run(table, positions.value);
  CHECK(table.grad.shape() == Shape({3, 4}));
  CHECK_FALSE(positions.grad);
  run(table.value, positions);
  CHECK(same_bits(positions.grad, dy.reshaped({2, 4})));
}

TEST_CASE("embedding: an id outside the vocabulary is named, with its place") {
  on_every_device([](Device device) {
    const Tensor table = drawn({10, 4}, Dtype::f32, device, 1);
    for (const auto& [bad, text] : {std::pair<int64_t, std::string>{10, "id 10"}, {-1, "id -1"}, {int64_t{1} << 40, "id 1099511627776"}}) {
      const Tensor ids = ids_of({1, 2, 3, 4, bad, 6}, {2, 3}, device);
      const std::string message = message_of([&] {
        embedding(ids, table, Tensor());
        check_embedding_ids(device);
      });
      CHECK(message == "embedding: " + text + " at [1 1] is outside the vocabulary of 10");
      CHECK(message_of([&] { check_embedding_ids(device); }) == "no error");
      CHECK(message_of([&] { embedding(ids_of({9, 0}, {1, 2}, device), table, Tensor()); }) == "no error");
    }
  });
}

TEST_CASE("embedding: messages") {
  const Tensor ids = ids_of({0, 1, 2}, {1, 3}, Device::cpu), table({4, 8}), positions({4, 8}), none;
  const auto error = [](const Tensor& ids_bc, const Tensor& table_vd, const Tensor& positions_Cd, int64_t first = 0) {
    return message_of([&] { embedding(ids_bc, table_vd, positions_Cd, 1, first); });
  };
  CHECK(error(ids, table, positions, 2) == "embedding: 3 positions from 2 on do not fit in positions_Cd[4 8] (4 positions)");
  CHECK(error(ids, table, positions, -1) == "embedding: 3 positions from -1 on do not fit in positions_Cd[4 8] (4 positions)");
  for (Device device : {Device::cpu, Device::cuda_emulated})
    for (int64_t first : {INT64_MAX, INT64_MAX - 1, INT64_MAX - 2})
      CHECK(error(to(ids, device), to(table, device), to(positions, device), first) ==
            "embedding: 3 positions from " + std::to_string(first) + " on do not fit in positions_Cd[4 8] (4 positions)");
  CHECK(
      message_of([&] { bucket_rows(ids, int64_t{1} << 31); }) == "bucket_rows: the vocabulary size is 2147483648, expected less than 2^31");
  CHECK(error(ids, table, Tensor({4, 6})) == "embedding: index d is 8 in table_vd[4 8] but 6 in positions_Cd[4 6]");
  CHECK(error(Tensor({1, 3}), table, none) == "embedding: ids_bc[1 3] is f32, expected i64");
  CHECK(error(ids.reshaped({3}), table, none) == "embedding: ids_bc[3] does not have the indices 'bc'");
  CHECK(error(ids, to(table, Device::cuda_emulated), none) == "embedding: ids_bc is i64 on cpu, but table_vd is f32 on cuda_emulated");
  CHECK(error(ids, table, Tensor({4, 8}, Dtype::f64)) == "embedding: table_vd is f32 on cpu, but positions_Cd is f64 on cpu");
}

TEST_CASE("rows are bucketed by id as a stable sort does it, strange ids left out") {
  for (const auto& [each_n, each_v] :
      {std::pair<int64_t, int64_t>{0, 3}, {1, 1}, {7, 3}, {511, 255}, {512, 256}, {1300, 257}, {2000, 65536}, {700, 1 << 20}}) {
    const auto &n = each_n, &v = each_v;
    std::vector<int64_t> ids = drawn_ids(n, v, 9);
    for (size_t i = 5; i < ids.size(); i += 97) ids[i] = i % 2 ? -1 : v;
    std::vector<int64_t> rows;
    for (int64_t r = 0; r < n; ++r)
      if (ids[static_cast<size_t>(r)] >= 0 && ids[static_cast<size_t>(r)] < v) rows.push_back(r);
    std::stable_sort(
        rows.begin(), rows.end(), [&](int64_t a, int64_t b) { return ids[static_cast<size_t>(a)] < ids[static_cast<size_t>(b)]; });
    on_every_device([&](Device device) {
      const RowBuckets buckets = bucket_rows(ids_of(ids, {n}, device), v);
      const Values start = values_of(buckets.start_u), sorted = values_of(buckets.rows_k);
      REQUIRE(start.back() == static_cast<double>(rows.size()));
      for (size_t k = 0; k < rows.size(); ++k) CHECK(sorted[k] == static_cast<double>(rows[k]));
      for (int64_t u = 0; u <= v; ++u) {
        const auto below =
            std::lower_bound(rows.begin(), rows.end(), u, [&](int64_t r, int64_t id) { return ids[static_cast<size_t>(r)] < id; });
        if (start[static_cast<size_t>(u)] != static_cast<double>(below - rows.begin())) FAIL("start of id ", u);
      }
    });
  }
}

TEST_CASE("sinusoidal positions are the formula, of odd widths too") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (int64_t width : {1, 2, 7, 64}) {
      const Tensor pe = sinusoidal_positions(33, width, dtype, device);
      CHECK(pe.shape() == Shape({33, width}));
      CHECK(pe.dtype() == dtype);
      CHECK(pe.device() == device);
      Values expected;
      for (int64_t t = 0; t < 33; ++t)
        for (int64_t d = 0; d < width; ++d) {
          const double angle = static_cast<double>(t) / std::pow(10000.0, 2.0 * static_cast<double>(d / 2) / static_cast<double>(width));
          expected.push_back(d % 2 ? std::cos(angle) : std::sin(angle));
        }
      CHECK(error_of(pe, expected) <= unit(dtype) + 64 * 0x1p-53);  // an angle of up to 32, rounded a few times
    }
  });
}
