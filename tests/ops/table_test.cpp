// One row for each op that is recorded on a tape: what it says to another dtype, to extents of 0, and whether it passes NaN on. The cases
// are the gradient checks' own, so that an op without a row here, or a row without an op, is a failed test.
#include "tests/ops/table.h"

#include <set>
#include <string>

#include "ops/checks/checks.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

using Inputs = std::vector<Parameter>;

// The messages of the forward and the backward about these inputs, without the place of the call; empty: they take them.
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

// The first input with the other kind of dtype: integers where floats are expected, floats for integers.
std::string with_other_dtype(const OpCheck& check) {
  Inputs inputs = draw_inputs(check, Device::cpu);
  Tensor& first = inputs[0].value;
  first = zeros(first.shape(), first.dtype() == Dtype::i64 ? Dtype::f64 : Dtype::i64, Device::cpu);
  return outcome(check, inputs);
}

// Each extent in turn becomes `size`, wherever it occurs: a letter of the op's shapes. The messages of those that are refused.
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

// Puts a value into each element of each floating input in turn. The number of elements that no output shows.
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

// The same values in the middle of a larger tensor, whose other elements are NaN or -1.
Tensor part_of_larger(const Tensor& t) {
  const Tensor larger({t.size() + 8}, t.dtype());
  if (t.dtype() == Dtype::i64) std::fill_n(larger.data<int64_t>(), larger.size(), -1);
  else fill(larger, NAN);
  const Tensor part = larger.rows(3, t.size()).reshaped(t.shape());
  copy(part, t);
  return part;
}

// The first case of an op. Error: it has none.
const OpCheck& case_of(const std::string& op) {
  for (const OpCheck& check : op_checks())
    if (check.op == op) return check;
  fail("{} has no gradient check", {op});
}

bool is_nan(double y) { return std::isnan(y); }
bool is_not_finite(double y) { return !std::isfinite(y); }

}  // namespace

TEST_CASE("the table of ops has the recorded ops, each once") {
  std::set<std::string> checked, rows;
  for (const OpCheck& check : op_checks()) checked.insert(check.op);
  for (const OpRow& row : kOpRows) rows.insert(row.op);
  CHECK(rows == checked);
  CHECK(rows.size() == kOpRows.size());
}

TEST_CASE("ops refuse another dtype by the text of their row") {
  for (const OpRow& row : kOpRows) {
    CAPTURE(row.op);
    CHECK(with_other_dtype(case_of(row.op)) == row.other_dtype);
  }
}

TEST_CASE("ops take extents of 0 and of 1, forward and backward, or refuse them by the texts of their row") {
  for (const OpRow& row : kOpRows) {
    CAPTURE(row.op);
    CHECK(with_extents(case_of(row.op), 0) == row.zero);
    CHECK(with_extents(case_of(row.op), 1) == row.one);
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
