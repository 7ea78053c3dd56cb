// ricci inspect of a run folder: numbers against a calculation by hand from the weights, names, messages.
#include "apps/lab/inspection/inspection.h"

#include <doctest/doctest.h>

#include <cmath>

#include "cuda/device/device.h"
#include "data/tokenizers/char_tokenizer.h"
#include "models/inspection/layers.h"
#include "models/inspection/token_distances.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

constexpr int64_t kWidth = 8, kHeads = 2, kPart = kWidth / kHeads;

// A run of a mixer with sampled weights, as at the start of training.
struct Run {
  ScratchFolder folder;
  explicit Run(const std::string& mixer, const std::string& more = "", const std::string& spoilt = "") {
    const std::string file =
        folder.write("run.yaml", "name: r\nmodel: {mixer: " + mixer + ", vocab: 7, d: 8, layers: 2, ctx: 12" + more + "}\n");
    RunRequest request{folder / "r", load_config<TrainConfig>(file)};
    RunFolder run = RunFolder::to_train(request);
    const auto tokenizer = CharTokenizer("a<b &\"\n");
    run.begin({&tokenizer});
    Model model(request.config.model);
    model.init(5);
    model.each_parameter([&](const std::string& path, Parameter& p) {
      if (path == spoilt) p.value.data<float>()[1] = NAN;
    });
    run.save_model(model, 0);
  }
  OpenModel open() const {
    ModelOptions options;
    options.compute.dtype = "f64";
    return open_model(folder / "r", options);
  }
};

Json found_in(const Run& run, const std::vector<int64_t>& ids, const InspectionOptions& options = {}) {
  return json_of(inspect(run.open(), ids, options));
}

double weight(Model& model, const std::string& wanted, int64_t i) {
  double value = std::nan("");
  model.each_parameter([&](const std::string& path, Parameter& p) {
    if (path == wanted) value = item(p.value, i);
  });
  return value;
}

// A row of the packed map of block 0 times its input, the RMS-normalised embedding of the token.
double projected_after_norm(Model& model, int64_t row, int64_t token) {
  double squares = 0, sum = 0;
  for (int64_t i = 0; i < kWidth; ++i) {
    const double x = weight(model, "tok.weight", token * kWidth + i);
    squares += x * x;
    sum += weight(model, "blocks.0.mixer.qkv.weight", row * kWidth + i) * x;
  }
  return sum / std::sqrt(squares / kWidth + 1e-5);
}

const std::vector<int64_t> kIds{1, 2, 3, 1, 5, 1, 6, 0};

}  // namespace

TEST_CASE("inspect: a metric is that of the weights, its eigenvalues fit it, scores are weights of earlier positions") {
  const Run run("metric", ", heads: 2");
  OpenModel open = run.open();
  const Json found = found_in(run, kIds);
  CHECK(found["mixer"] == "metric");
  REQUIRE(found["layers"].size() == 2);
  for (int64_t n = 0; n < kHeads; ++n) {
    const Json& head = found["layers"][1]["heads"][static_cast<size_t>(n)];
    double trace = 0, sum = 0, squares = 0, of_values = 0;
    for (int64_t i = 0; i < kPart; ++i)
      for (int64_t j = 0; j < kPart; ++j) {
        const int64_t least = std::min(i, j), most = std::max(i, j), packed = least * kPart - least * (least - 1) / 2 + (most - least);
        const double value = head["matrix"][static_cast<size_t>(i)][static_cast<size_t>(j)];
        CHECK(value == doctest::Approx(weight(open.model, "blocks.1.mixer.m_metric", n * 10 + packed)).epsilon(1e-7));
        trace += i == j ? value : 0, squares += value * value;
      }
    for (const Json& value : head["eigenvalues"]) sum += value.get<double>(), of_values += value.get<double>() * value.get<double>();
    CHECK(head["eigenvalues"].size() == kPart);
    CHECK(sum == doctest::Approx(trace).epsilon(1e-6));
    CHECK(of_values == doctest::Approx(squares).epsilon(1e-6));
    REQUIRE(head["scores"].size() == kIds.size());
    for (size_t c = 0; c < kIds.size(); ++c) {
      double row = 0;
      for (size_t C = 0; C < kIds.size(); ++C) {
        CHECK((head["scores"][c][C].get<double>() > 0) == (C <= c));
        row += head["scores"][c][C].get<double>();
      }
      CHECK(row == doctest::Approx(1).epsilon(1e-6));
    }
  }
  CHECK(found["missing"].empty());
}

TEST_CASE("inspect: the nearest tokens are those of the least distance, and the same numbers stand in the table") {
  const Run run("metric_psd", ", heads: 2");
  InspectionOptions options;
  options.tokens = {"b", "\n", "&"}, options.nearest = 4, options.layers = {1}, options.heads = {1};
  const Json found = found_in(run, kIds, options);
  REQUIRE(found["layers"].size() == 1);
  REQUIRE(found["layers"][0]["heads"].size() == 1);
  const Json& head = found["layers"][0]["heads"][0];
  CHECK(head["head"] == 1);
  CHECK(found["tokens"][1]["token"] == "↵");
  const Tensor ids = Tensor({1}, Dtype::i64);
  ids.data<int64_t>()[0] = found["tokens"][0]["id"];
  const OpenModel open = run.open();
  const Tensor distances = token_distances(open.model, open.model.layers()[1], ids);
  const Json& nearest = head["nearest"][0]["neighbours"];
  REQUIRE(nearest.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(nearest[i]["id"] != found["tokens"][0]["id"]);
    CHECK(nearest[i]["squared_distance"].get<double>() ==
          doctest::Approx(item(distances, 7 + nearest[i]["id"].get<int64_t>())).epsilon(1e-7));
    if (i) CHECK(nearest[i]["squared_distance"] >= nearest[i - 1]["squared_distance"]);
  }
  int64_t nearer = 0;
  for (int64_t id = 0; id < 7; ++id) nearer += item(distances, 7 + id) < nearest[3]["squared_distance"].get<double>() * (1 - 1e-7);
  CHECK(nearer == 4);  // three of them, and the token itself
  CHECK(head["squared_distances"][0][0] == 0);
  CHECK(head["squared_distances"][0][2].get<double>() ==
        doctest::Approx(item(distances, 7 + found["tokens"][2]["id"].get<int64_t>())).epsilon(1e-7));
}

TEST_CASE("inspect: Wq Wk^T of scaled dot product is the product of the weights") {
  const Run run("sdp", ", heads: 2");
  OpenModel open = run.open();
  const Json found = found_in(run, kIds), &head = found["layers"][0]["heads"][1];
  double largest = 0;
  for (int64_t i = 0; i < kWidth; ++i)
    for (int64_t j = 0; j < kWidth; ++j) {
      double sum = 0;
      for (int64_t k = kPart; k < 2 * kPart; ++k)
        sum += weight(open.model, "blocks.0.mixer.qkv.weight", k * kWidth + i) *
               weight(open.model, "blocks.0.mixer.qkv.weight", (kWidth + k) * kWidth + j);
      CHECK(head["matrix"][static_cast<size_t>(i)][static_cast<size_t>(j)].get<double>() == doctest::Approx(sum).epsilon(1e-6));
      largest = std::max(largest, std::abs(sum));
    }
  CHECK(head["symmetric"] == false);
  CHECK(head["singular_values"].size() == kWidth);
  CHECK(head["singular_values"][0].get<double>() >= largest);
  CHECK(head["singular_values"][4].get<double>() < 1e-7 * head["singular_values"][0].get<double>());  // its rank is the width of a head
  CHECK(!head.contains("nearest"));
}

TEST_CASE("inspect: heads that share keys and turn by positions") {
  constexpr int64_t kGroup = 2, kPair = 2;  // heads to a head of keys, columns of a head
  const Run run("sdp", ", preset: llama, heads: 4, kv_heads: 2, rope_theta: 10");
  OpenModel open = run.open();
  const Json found = found_in(run, kIds);
  const auto qkv = [&](int64_t row, int64_t i) { return weight(open.model, "blocks.0.mixer.qkv.weight", row * kWidth + i); };
  const auto projected = [&](int64_t row, int64_t token) { return projected_after_norm(open.model, row, token); };
  for (int64_t n = 0; n < 4; ++n) {
    const Json& head = found["layers"][0]["heads"][static_cast<size_t>(n)];
    const int64_t query = n * kPair, key = 4 * kPair + n / kGroup * kPair;  // their first rows
    double product = 0;
    for (int64_t k = 0; k < kPair; ++k) product += qkv(query + k, 1) * qkv(key + k, 6);
    CHECK(head["matrix"][1][6].get<double>() == doctest::Approx(product).epsilon(1e-6));
    // With two columns a head is one pair. It turns by one radian a position, so the score depends only on the angle between query and key.
    for (size_t c = 0; c < kIds.size(); ++c) {
      std::vector<double> weights;
      double sum = 0;
      for (size_t C = 0; C <= c; ++C) {
        const double angle = static_cast<double>(c - C), q0 = projected(query, kIds[c]), q1 = projected(query + 1, kIds[c]),
                     k0 = projected(key, kIds[C]), k1 = projected(key + 1, kIds[C]);
        weights.push_back(std::exp(
            ((q0 * k0 + q1 * k1) * std::cos(angle) + (q0 * k1 - q1 * k0) * std::sin(angle)) / std::sqrt(static_cast<double>(kPair))));
        sum += weights.back();
      }
      for (size_t C = 0; C < kIds.size(); ++C)
        CHECK(head["scores"][c][C].get<double>() == doctest::Approx(C <= c ? weights[C] / sum : 0).epsilon(1e-6));
    }
  }
  // The first matrix of a layer explains the difference between scores and matrix.
  int64_t matrices = 0, explained = 0;
  for (const Picture& picture : pictures_of(inspect(open, kIds, {}))) {
    explained += contains(picture.caption, "This is the score at distance 0: at other distances, a rotation comes between");
    if (!picture.name.ends_with("_matrix")) continue;
    ++matrices;
    CHECK(picture.group.ends_with(": Wq Wk^T without the rotation"));
  }
  CHECK(matrices == 8);
  CHECK(explained == 2);
}

TEST_CASE("inspect: normalised queries and keys have scores, and no matrix") {
  const Json found = found_in(Run("sdp", ", preset: llama, heads: 4, kv_heads: 2, qk_norm: true"), kIds),
             &head = found["layers"][1]["heads"][3];
  CHECK(head["scores"].size() == kIds.size());
  CHECK(!head.contains("matrix"));
}

TEST_CASE("inspect: the table of a Dispatcher holds products of its coefficients") {
  const Json found = found_in(Run("dispatcher", ", heads: 2"), kIds), &head = found["layers"][0]["heads"][0], &c = head["coefficients"],
             &scores = head["scores"];
  REQUIRE(c.size() == kIds.size());
  REQUIRE(c[0].size() == 4);
  CHECK(scores[5][4].get<double>() == doctest::Approx(c[5][0].get<double>()));
  CHECK(scores[6][0].get<double>() == doctest::Approx(c[6][2].get<double>() * c[2][1].get<double>()));
  CHECK(scores[3][3] == 1);
  CHECK(!head.contains("matrix"));
}

TEST_CASE("inspect: mixers without tables") {
  for (const char* mixer : {"avgpool", "identity"}) {
    const Json found = found_in(Run(mixer), kIds);
    REQUIRE(found["missing"].size() == 1);
    CHECK(
        found["missing"][0] == std::string(mixer) + " has neither scores, coefficients nor a metric: it mixes all texts in the same way.");
  }
  CHECK(found_in(Run("p_only", ", heads: 2"), kIds)["layers"][0]["heads"][0]["nearest"].size() == 6);
}

TEST_CASE("inspect: files of a report, and names in them") {
  const Run run("metric", ", heads: 2");
  const Inspection found = inspect(run.open(), kIds, {});
  // Each layer and head has three drawings, each layer a spectrum. The page and the numbers are also files.
  CHECK(write_report(run.folder / "out/deep", found) == 2 * (2 * 3 + 1) + 2);
  int64_t drawings = 0;
  for (const auto& each : std::filesystem::directory_iterator(run.folder / "out/deep")) drawings += each.path().extension() == ".svg";
  CHECK(drawings == 14);
  const std::string page = read_file(run.folder / "out/deep/index.html");
  CHECK(page.find("&lt;b␣") != page.npos);
  CHECK(page.find("<h2>Layer 1: metric tensor</h2>") != page.npos);
  const std::string distances = read_file(run.folder / "out/deep/layer0_head1_distances.svg");
  CHECK(contains(distances, "Layer 0: squared distances of tokens"));
  CHECK(contains(distances, "head 1"));
  for (const Picture& picture : pictures_of(found)) {
    const bool is_first = picture.name.find("head1") == std::string::npos;
    CHECK(picture.caption.ends_with(is_first ? "." : ""));
    CHECK(picture.caption.empty() == !is_first);
    CHECK(page.find(escaped(picture.caption)) != page.npos);
  }
}

TEST_CASE("inspect: layers, heads and tokens that the model lacks are refused") {
  const Run run("metric", ", heads: 2");
  const OpenModel open = run.open();
  const auto refused = [&](InspectionOptions options) { return error_of([&] { inspect(open, kIds, options); }); };
  for (const char* weight : {"blocks.1.mixer.m_metric", "tok.weight"}) {
    const OpenModel spoilt = Run("metric", ", heads: 2", weight).open();
    CHECK(error_of([&] { inspect(spoilt, kIds, {}); }) ==
          format_message("layer {}: the weights of the metric mixer are not finite", {weight[0] == 't' ? 0 : 1}));
  }
  CHECK(refused({{2}, {}, {}, 3}) == "--layers: 2, but the model has 2 layers");
  CHECK(refused({{}, {0, 5}, {}, 3}) == "--heads: 5, but the model has 2 heads");
  CHECK(refused({{}, {}, {"ab"}, 3}) == "--token: 'ab' is 2 tokens, expected one");
}
