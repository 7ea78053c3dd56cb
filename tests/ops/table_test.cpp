// Inputs that do not fit together, extents of 0 and 1, NaN, and views, for every op that is recorded on a tape. The cases are those of the
// gradient checks, so a new op is included: an op without a row here, or a row without an op, fails the test.
#include <algorithm>
#include <set>
#include <string>

#include "ops/checks/checks.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct OpRow {
  std::string op;
  std::string other_dtype;     // its first input, never i64; or the message about floats for integers; empty: both are valid
  std::set<std::string> zero;  // its messages about an extent of 0
  std::set<std::string> one;   // its messages about an extent of 1
  int64_t unread = 0;          // unused elements of inputs: a NaN there shows in no output
  int64_t without_weight = 0;  // elements that get a weight of 0 or divide to 0 if they are infinite
};

OpRow metric_row(const std::string& op) {
  const std::string m = op + ": m_nl";
  return {op, "p_bcd[2 5 8]",
      {m + "[0 10] is a metric of 0 heads of width 4, expected heads that fill all columns of p_bcd[0 5 8] (8)",
          m + "[2 0] is a metric of 2 heads of width 0, expected heads that fill all columns of p_bcd[2 5 8] (8)",
          m + "[2 10] is a metric of 2 heads of width 4, expected heads that fill all columns of p_bcd[2 5 0] (0)"},
      {m + "[1 10] is a metric of 1 heads of width 4, expected heads that fill all columns of p_bcd[1 5 8] (8)",
          m + "[2 10] is a metric of 2 heads of width 4, expected heads that fill all columns of p_bcd[2 5 1] (1)",
          m + "[2 1] is a metric of 2 heads of width 1, expected heads that fill all columns of p_bcd[2 5 8] (8)"}};
}

const std::vector<OpRow> kOpRows = {
    {"add", "a[3 5]", {}, {}},
    {"attention", "q_bcx[2 7 18]", {"attention: q[2 7 0] does not have 6 columns from column 0 on"},
        {"attention: q[2 7 1] does not have 6 columns from column 0 on"}, 0, 23},
    {"bag_cross_entropy", "logits_bmv[2 4 5]",
        {"bag_cross_entropy: id 3 at [0 0] is outside the vocabulary of 0",
            "bag_cross_entropy: logits_bmv[2 0 5] has 0 cells, expected the same number as ids_bc[2 14] (4 cells of 3 tokens)",
            "bag_cross_entropy: logits_bmv[2 4 5] has 4 cells, expected the same number as ids_bc[2 0] (0 cells of 3 tokens)"},
        {"bag_cross_entropy: id 3 at [0 0] is outside the vocabulary of 1",
            "bag_cross_entropy: logits_bmv[2 1 5] has 1 cells, expected the same number as ids_bc[2 14] (4 cells of 3 tokens)",
            "bag_cross_entropy: logits_bmv[2 4 5] has 4 cells, expected the same number as ids_bc[2 1] (0 cells of 3 tokens)"},
        10},
    {"cast", "x[3 5]", {}, {}},
    {"cell_max", "x_bcd[2 7 5]", {}, {}, 10},
    {"cell_mean", "x_bcd[2 7 5]", {}, {}, 10},
    {"cell_windows", "x_bcd[2 7 3]", {}, {}, 6},
    {"classifier_loss", "x_rd[7 5]", {"classifier_loss: target 3 at row 0 is outside the vocabulary of 0"},
        {"classifier_loss: target 3 at row 0 is outside the vocabulary of 1"}, 10},
    {"concatenate", "concatenate: part 1 is f64 [2 1] on cpu, expected to match part 0 (i64 [2 3] on cpu) except along index 1", {}, {}},
    {"contract", "a[3 5]", {}, {}},
    {"cross_entropy", "logits_rv[3 301]", {"cross_entropy: target 8 at row 0 is outside the 0 classes"},
        {"cross_entropy: target 8 at row 0 is outside the 1 classes"}},
    {"divide", "a[3 5]", {}, {}, 0, 15},
    {"dropout", "x[9 7]", {}, {}},
    {"embedding", "embedding: ids_bc[3 5] is f64, expected i64",
        {"embedding: id 1 at [0 0] is outside the vocabulary of 0",
            "embedding: 5 positions from 2 on do not fit in positions_Cd[0 7] (0 positions)"},
        {"embedding: id 1 at [0 0] is outside the vocabulary of 1",
            "embedding: 5 positions from 2 on do not fit in positions_Cd[1 7] (1 positions)"},
        28},
    {"gated", "x_rd[6 10]", {}, {"gated: there are 1 columns in x_rd[2 3 1], expected an even number (one half is the gate)"}},
    {"gelu", "x[3 7]", {}, {}},
    {"gelu_tanh", "x[3 7]", {}, {}},
    {"join_upsampled", "a_bcd[2 11 3]",
        {"join_upsampled: the 0 columns of z_bmx[2 2 0] are not a multiple of the 3 of a_bcd[2 11 3]",
            "join_upsampled: the 12 columns of z_bmx[2 2 12] are not a multiple of the 0 of a_bcd[2 11 0]"},
        {"join_upsampled: the 1 columns of z_bmx[2 2 1] are not a multiple of the 3 of a_bcd[2 11 3]"}},
    {"layer_norm", "x_rd[15 7]", {}, {}},
    {"linear", "x_rd[6 5]", {}, {}},
    {"mean", "x[3 5 7]", {"mean: [0 5 7] has no elements"}, {}},
    {"mean_over_positions", "x_bcd[2 7 5]", {}, {}},
    metric_row("metric_scores"),
    {"multiply", "a[3 5]", {}, {}},
    {"permute", "", {}, {}},
    {"recompute", "gelu: x[3 5] is i64, expected f32, f64 or bf16", {}, {}},
    {"relu", "x[3 7]", {}, {}},
    {"relu2", "x[3 7]", {}, {}},
    {"reshape", "gelu: x[2 3 5] is i64, expected f32, f64 or bf16",
        {"reshape: [0 3 5] cannot become [5 6]", "reshape: [2 0 5] cannot become [5 6]", "reshape: [2 3 0] cannot become [5 6]"},
        {"reshape: [1 3 5] cannot become [5 6]", "reshape: [2 1 5] cannot become [5 6]", "reshape: [2 3 1] cannot become [5 6]"}},
    {"residual_layer_norm", "x_rd[15 7]", {}, {}},
    {"residual_rms_norm", "x_rd[15 8]", {}, {}},
    {"rms_norm", "x_rd[15 7]", {}, {}},
    {"rotary", "x_bcd[2 3 24]", {"rotary: x_bcd[2 3 0] does not have 3 + 2 heads of 4 columns"},
        {"rotary: x_bcd[2 3 1] does not have 3 + 2 heads of 4 columns"}, 24},
    {"scale", "x[3 7]", {}, {}},
    {"shift_and_sum", "v_bcd[1 2 1]", {"shift_and_sum: the number of levels is 0, expected 1 .. 30"}, {}},
    {"sigmoid", "x[3 7]", {}, {}, 0, 21},
    {"silu", "x[3 7]", {}, {}},
    {"slice", "", {"slice: 3 elements from element 2 on do not all exist in index 1 of [3 0 2]"},
        {"slice: 3 elements from element 2 on do not all exist in index 1 of [3 1 2]"}, 24},
    {"softmax", "x[3 5 7]", {}, {}},
    {"subtract", "a[3 5]", {}, {}},
    {"sum", "x[3 5 7]", {}, {}},
    metric_row("times_metric"),
    {"window_mean_difference", "x_bcd[2 7 5]", {}, {}},
};

using Inputs = std::vector<Parameter>;

// The messages of forward and backward about these inputs, without the source line; empty: the inputs are valid.
std::string outcome(const OpCheck& check, const Inputs& inputs) {
  std::string message = message_of([&] {
    Tape tape;
    const std::vector<Tensor> ys = check.run(inputs);
    std::vector<Tensor> dys;
    for (const Tensor& y : ys) {
      if (y.dtype() == Dtype::i64) return;  // no gradient
      dys.push_back(like(y));
      fill(dys.back(), 1);
    }
    tape.backward(ys, dys);
  });
  if (message == "no error") return "";
  const size_t from = message.find(" ("), to = message.find("): ");
  return from < to && to != message.npos && from < message.find(": ") ? message.substr(0, from) + message.substr(to + 1) : message;
}

// The message about a first input of the wrong kind: integers for floats, or floats for integers.
std::string with_other_dtype(const OpCheck& check) {
  Inputs inputs = draw_inputs(check, Device::cpu);
  Tensor& first = inputs[0].value;
  first = zeros(first.shape(), first.dtype() == Dtype::i64 ? Dtype::f64 : Dtype::i64, Device::cpu);
  return outcome(check, inputs);
}

// Each extent (a letter of the op's shapes) in turn becomes `size` wherever it occurs. Returns the messages.
std::set<std::string> with_extents(const OpCheck& check, int64_t size) {
  std::set<int64_t> extents;
  std::set<std::string> messages;
  for (const CheckInput& input : check.inputs)
    for (int i = 0; i < input.shape.rank(); ++i) extents.insert(input.shape[i]);
  for (const int64_t extent : extents) {
    OpCheck other = check;
    for (CheckInput& input : other.inputs)
      for (int i = 0; i < input.shape.rank(); ++i)
        if (input.shape[i] == extent) input.shape.set(i, size);
    if (const std::string message = outcome(other, draw_inputs(other, Device::cpu)); !message.empty()) messages.insert(message);
  }
  return messages;
}

// Puts a value into each element of each floating input in turn. Returns the number of elements that no output shows.
int64_t hidden(const OpCheck& check, double value, const std::function<bool(double)>& shows) {
  int64_t count = 0;
  const Inputs drawn = draw_inputs(check, Device::cpu);
  for (size_t i = 0; i < drawn.size(); ++i) {
    if (drawn[i].value.dtype() == Dtype::i64) continue;
    for (int64_t e = 0; e < drawn[i].value.size(); ++e) {
      Inputs inputs = draw_inputs(check, Device::cpu);
      inputs[i].value.data<double>()[e] = value;
      bool shown = false;
      for (const Tensor& y : check.run(inputs))
        if (y.dtype() != Dtype::i64)
          for (const double each : values_of(y)) shown |= shows(each);
      count += !shown;
    }
  }
  return count;
}

// Equal values in the middle of a larger tensor; its other elements are NaN or -1.
Tensor part_of_larger(const Tensor& t) {
  const Tensor larger({t.size() + 8}, t.dtype());
  if (t.dtype() == Dtype::i64) std::fill_n(larger.data<int64_t>(), larger.size(), -1);
  else fill(larger, NAN);
  const Tensor part = larger.rows(3, t.size()).reshaped(t.shape());
  copy(part, t);
  return part;
}

// The first case of an op. Error: the op has no case.
const OpCheck& case_of(const std::string& op) {
  for (const OpCheck& check : op_checks())
    if (check.op == op) return check;
  fail("{} has no gradient check", {op});
}

bool is_nan(double y) { return std::isnan(y); }
bool is_not_finite(double y) { return !std::isfinite(y); }

std::set<std::string> op_names() {
  std::set<std::string> names{"transpose"};  // recorded as permute
  for (const OpCheck& check : op_checks()) names.insert(check.op);
  return names;
}

// The op at the start of a message, or "".
std::string op_of(const std::string& message) {
  const std::string word = message.substr(0, message.find_first_of(": ("));
  return op_names().contains(word) ? word : "";
}

// Changes each input of each case in turn. An op either throws a message with its name or accepts the input. Returns the ops that accept.
// Inputs that `change` does not change (false) are left out.
std::set<std::string> taken(const std::function<bool(Inputs&, size_t)>& change) {
  std::set<std::string> all;
  for (const OpCheck& check : op_checks())
    for (size_t i = 0; i < check.inputs.size(); ++i) {
      Inputs inputs = draw_inputs(check, Device::cpu);
      if (!change(inputs, i)) continue;
      const std::string message = outcome(check, inputs);
      INFO("op ", std::string(check.op), ", what ", std::string(check.variant), ", i ", i, ", message ", message);
      CHECK((message.empty() || !op_of(message).empty()));
      if (message.empty()) all.insert(std::string(check.op) + " " + std::to_string(i));
    }
  return all;
}

std::string joined(const std::set<std::string>& messages) {
  std::string lines;
  for (const std::string& message : messages) lines += message + "\n";
  return lines;
}

}  // namespace

TEST_CASE("the table of ops has the recorded ops, each once") {
  std::set<std::string> checked, rows;
  for (const OpCheck& check : op_checks()) checked.insert(check.op);
  for (const OpRow& row : kOpRows) rows.insert(row.op);
  for (const std::string& op : checked) CHECK_MESSAGE(rows.contains(op), "kOpRows has no row for the op ", op);
  for (const std::string& op : rows) CHECK_MESSAGE(checked.contains(op), "no check records the op ", op);
  CHECK(rows.size() == kOpRows.size());
}

TEST_CASE("ops refuse another dtype by the text of their row") {
  for (const OpRow& row : kOpRows) {
    CAPTURE(row.op);
    const std::string floats = row.op + ": " + row.other_dtype + " is i64, expected f32, f64 or bf16";
    CHECK(with_other_dtype(case_of(row.op)) == (row.other_dtype.ends_with("]") ? floats : row.other_dtype));
  }
}

TEST_CASE("ops take extents of 0 and of 1, forward and backward, or refuse them by the texts of their row") {
  for (const OpRow& row : kOpRows) {
    CAPTURE(row.op);
    CHECK(joined(with_extents(case_of(row.op), 0)) == joined(row.zero));
    CHECK(joined(with_extents(case_of(row.op), 1)) == joined(row.one));
  }
}

TEST_CASE("a NaN anywhere in an input shows in an output, and so does an infinity that has a weight") {
  for (const OpRow& row : kOpRows) {
    CAPTURE(row.op);
    CHECK(hidden(case_of(row.op), NAN, is_nan) == row.unread);
    CHECK(hidden(case_of(row.op), HUGE_VAL, is_not_finite) == row.unread + row.without_weight);
  }
}

TEST_CASE("ops compute with inputs that are parts of a larger tensor") {
  for (const OpRow& row : kOpRows) {
    CAPTURE(row.op);
    const OpCheck& check = case_of(row.op);
    const Inputs whole = draw_inputs(check, Device::cpu);
    Inputs parts = draw_inputs(check, Device::cpu);
    for (Parameter& part : parts) part.value = part_of_larger(part.value);
    const std::vector<Tensor> expected = check.run(whole), got = check.run(parts);
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) CHECK(values_of(got[i]) == values_of(expected[i]));
  }
}

TEST_CASE("an empty input is an error that names the op, but where the op can do without it") {
  const std::set<std::string> none = taken([](Inputs& inputs, size_t i) { return inputs[i].value = {}, true; });
  CHECK(none == std::set<std::string>{"classifier_loss 2", "embedding 2", "layer_norm 2", "linear 2", "residual_layer_norm 3"});
}

TEST_CASE("inputs on two devices are an error that names the op") {
  const std::set<std::string> apart = taken([](Inputs& inputs, size_t i) {
    if (inputs.size() == 1) return false;
    return inputs[i].value = to(inputs[i].value, Device::cuda_emulated), true;
  });
  CHECK(apart.empty());
}

TEST_CASE("floating-point inputs of two dtypes are an error that names the op") {
  for (Dtype other : {Dtype::f32, Dtype::bf16}) {
    const std::set<std::string> mixed = taken([&](Inputs& inputs, size_t i) {
      const auto floating = std::count_if(inputs.begin(), inputs.end(), [](const Parameter& p) { return p.value.dtype() == Dtype::f64; });
      if (floating < 2 || inputs[i].value.dtype() != Dtype::f64) return false;
      return inputs[i].value = convert(inputs[i].value, other), true;
    });
    CHECK(mixed.empty());
  }
}

TEST_CASE("floats for integers and integers for floats are an error that names the op, but of ops that only move elements") {
  const std::set<std::string> floats = taken([](Inputs& inputs, size_t i) {
    if (inputs[i].value.dtype() != Dtype::i64) return false;
    return inputs[i].value = zeros(inputs[i].value.shape(), Dtype::f64, Device::cpu), true;
  });
  CHECK(floats.empty());
  const std::set<std::string> integers = taken([](Inputs& inputs, size_t i) {
    if (inputs[i].value.dtype() == Dtype::i64) return false;
    return inputs[i].value = zeros(inputs[i].value.shape(), Dtype::i64, Device::cpu), true;
  });
  CHECK(integers == std::set<std::string>{"permute 0", "slice 0"});
}

// An op must also differentiate the inputs that it accepts; AddressSanitizer sees reads beyond the end of an input.
TEST_CASE("inputs of other shapes: an op says what is wrong, or takes them, forward and backward") {
  int accepted = 0, refused = 0;
  for (const OpCheck& check : op_checks())
    for (size_t i = 0; i < check.inputs.size(); ++i)
      for (int index = -1; index < check.inputs[i].shape.rank(); ++index)
        for (int64_t by : {-1, 1}) {
          OpCheck other = check;
          Shape& shape = other.inputs[i].shape;
          if (index >= 0) {
            shape.set(index, shape[index] + by);
          } else if (shape.rank() < Shape::kMaxRank) {
            const Shape inner = shape;
            shape = Shape{by + 2};  // one more index, of extent 1 and 3
            for (int d = 0; d < inner.rank(); ++d) shape.push_back(inner[d]);
          }
          const std::string message = outcome(other, draw_inputs(other, Device::cpu));
          INFO("op ", std::string(check.op), ", what ", std::string(check.variant), ", i ", i, ", index ", index, ", by ", by, ", message ",
              message);
          CHECK((message.empty() || !op_of(message).empty()));
          ++(message.empty() ? accepted : refused);
        }
  CHECK(accepted > 100);
  CHECK(refused > 100);
}
