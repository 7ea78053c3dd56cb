#include "apps/run/choices.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "apps/run/metrics.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/table.h"
#include "core/files/file.h"
#include "cuda/device/device.h"
#include "data/text/utf8.h"
#include "data/tokenizers/unicode.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

struct Question {
  std::string place;  // for messages: "arc.jsonl:3"
  std::string context;
  std::vector<std::string> choices;
  int64_t answer = 0;  // index of the correct choice
};

struct ScoredRun {
  NamedWeights run;
  int64_t context = 0;
  std::vector<std::vector<double>> log_probabilities = {};  // for each question and choice
};

// The last tokens of a context, followed by a choice.
struct Sequence {
  std::vector<int64_t> ids;
  int64_t scored;  // tokens of the choice, at the end
  double* log_probability;
};

// ---- Questions
template <class T> T needed(const Json& line, const char* key, const std::string& place) {
  const std::optional<T> value = read_member<T>(line, key, place);
  if (!value) fail("{}: {}: is missing", {place, key});
  return *value;
}

// Reads an index. A string such as "2" is allowed.
int64_t read_index(const Json& line, const char* key, const std::string& place) {
  const Json& value = member(line, key);
  int64_t index = 0;
  return value.is_string() && is_integer(value.get<std::string>(), index) ? index : needed<int64_t>(line, key, place);
}

size_t end_without_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && is_python_space(decode_utf8_before(text, end).code)) end -= decode_utf8_before(text, end).bytes;
  return end;
}

// Removes WikiHow's marks in brackets from a HellaSwag text.
std::string without_marks(std::string text) {
  text.resize(end_without_space(text));
  while (!text.empty() && is_python_space(decode_utf8(text, 0).code)) text.erase(0, decode_utf8(text, 0).bytes);
  text = replaced(text, " [title]", ". ");
  for (size_t position = 0; (position = text.find('[', position)) != text.npos;) {
    const size_t end = text.find_first_of("]\n", position);
    if (end != text.npos && text[end] == ']') text.erase(position, end + 1 - position);
    else ++position;
  }
  return replaced(text, "  ", " ");
}

// Makes the text lower case, and its first letter upper case if it is ASCII.
std::string capitalized(std::string_view text) {
  std::string lower;
  for (size_t position = 0; position < text.size(); position += decode_utf8(text, position).bytes)
    append_lower_case(decode_utf8(text, position).code, lower);
  if (!lower.empty() && lower[0] >= 'a' && lower[0] <= 'z') lower[0] = static_cast<char>(lower[0] - 'a' + 'A');
  return lower;
}

Question read_question(const Json& line, const std::string& place) {
  const auto text = [&](const char* key) { return needed<std::string>(line, key, place); };
  const auto texts = [&](const Json& object, const char* key) { return needed<std::vector<std::string>>(object, key, place); };
  if (line.contains("endings")) {
    const std::string context = text("activity_label") + ": " + text("ctx_a") + " " + capitalized(text("ctx_b"));
    Question question{place, without_marks(context), texts(line, "endings"), read_index(line, "label", place)};
    for (std::string& choice : question.choices) choice = without_marks(choice);
    return question;
  }
  if (line.contains("answerKey")) {
    const std::vector<std::string> labels = texts(member(line, "choices"), "label");
    const auto answer = std::find(labels.begin(), labels.end(), text("answerKey")) - labels.begin();
    return {place, "Question: " + text("question") + "\nAnswer:", texts(member(line, "choices"), "text"), answer};
  }
  if (line.contains("goal"))
    return {place, "Question: " + text("goal") + "\nAnswer:", {text("sol1"), text("sol2")}, read_index(line, "label", place)};
  if (line.contains("context")) return {place, text("context"), texts(line, "choices"), read_index(line, "answer", place)};
  fail("{}: expected context, choices and answer, or the fields of HellaSwag, ARC or PIQA", {place});
}

std::vector<Question> read_questions(const std::string& path) {
  std::vector<Question> questions;
  int64_t number = 0;
  each_line(read_text(path) + "\n", [&](std::string_view line) {
    const std::string place = format_message("{}:{}", {path, ++number});
    if (line.find_first_not_of(" \t\r\n") == line.npos) return;
    const Question& question = questions.emplace_back(read_question(parse_json(line, place), place));
    const auto choices = std::ssize(question.choices);
    if (choices < 2) fail("{}: has {}, expected 2 or more", {place, counted(choices, "choice")});
    if (question.answer < 0 || question.answer >= choices) fail("{}: the answer is not one of the {} choices", {place, choices});
  });
  if (questions.empty()) fail("{}: has no questions", {path});
  return questions;
}

// ---- Scores
// Encodes context + choice. The tokens after the first n belong to the choice, where n is the token count of the context. White space at
// the end of the context belongs to the choice.
Sequence make_sequence(const Tokenizer& tokenizer, const Question& question, const std::string& choice, int64_t window) {
  std::vector<int64_t> ids = tokenizer.encode_start(question.context + " " + choice);
  auto before = std::ssize(tokenizer.encode_start(question.context.substr(0, end_without_space(question.context))));
  if (before == 0) {
    const Marks marks = tokenizer.marks();
    if (marks.begin < 0 && marks.ends.empty())
      fail("{}: the context has no tokens, and the {} tokenizer has no token that starts a text", {question.place, tokenizer.name()});
    ids.insert(ids.begin(), marks.begin >= 0 ? marks.begin : marks.ends[0]);
    before = 1;
  }
  const auto scored = std::ssize(ids) - before;
  if (scored < 1 || scored > window)
    fail("{}: the choice '{}' has {} tokens after the context, expected 1 to {}", {question.place, one_line(choice), scored, window});
  ids.erase(ids.begin(), ids.end() - std::min(std::ssize(ids), window + 1));
  return {std::move(ids), scored, nullptr};
}

// Packs sequences into a batch, padded with id 0 to the longest sequence.
Batch make_batch(std::span<const Sequence> sequences, int64_t width) {
  const Shape shape{std::ssize(sequences), width};
  std::vector<int64_t> ids(static_cast<size_t>(shape.size())), targets(ids.size(), kNoTarget);
  for (ptrdiff_t i = 0; i < std::ssize(sequences); ++i) {
    const auto& [own, scored, _] = sequences[static_cast<size_t>(i)];
    std::copy(own.begin(), own.end() - 1, ids.begin() + i * width);
    std::copy(own.end() - scored, own.end(), targets.begin() + i * width + std::ssize(own) - 1 - scored);
  }
  return {.ids_bc = tensor_of(ids, shape), .targets = tensor_of(targets, shape)};
}

// Scores the choices. Sorts sequences by length, longest first, so a batch needs little padding.
ScoredRun score(const OpenModel& open, std::span<const Question> questions, int64_t batch) {
  ScoredRun result{open.run.weights(), open.context};
  std::vector<Sequence> sequences;
  for (const Question& question : questions) {
    std::vector<double>& values = result.log_probabilities.emplace_back(question.choices.size());
    for (size_t k = 0; k < values.size(); ++k) {
      sequences.push_back(make_sequence(*open.run.tokenizer(), question, question.choices[k], open.context));
      sequences.back().log_probability = &values[k];
    }
  }
  std::stable_sort(sequences.begin(), sequences.end(), [](const auto& a, const auto& b) { return a.ids.size() > b.ids.size(); });
  Progress progress({.steps = std::ssize(sequences), .unit = "choice", .out = stderr});
  for (auto next = sequences.begin(); next != sequences.end();) {
    const auto first = next;
    const auto width = std::ssize(first->ids) - 1;
    next += std::min({batch, rows_at_once(open.model, width), sequences.end() - first});
    const std::vector<double> nats = token_nats(open.model, to(make_batch({first, next}, width), open.device));
    auto row = nats.begin();
    for (auto one = first; one != next; ++one, row += width) {
      const auto end = row + std::ssize(one->ids) - 1;
      *one->log_probability = -std::accumulate(end - one->scored, end, 0.0);
      if (std::isnan(*one->log_probability)) fail("{}: the log-probability of a choice is NaN", {result.run.text()});
    }
    progress.update(next - sequences.begin(), (next - sequences.begin()) * width);
  }
  return result;
}

// Returns the fraction of correct answers. On a tie, the first choice wins.
template <class Length> double accuracy(const ScoredRun& scored, std::span<const Question> questions, const Length& length) {
  int64_t right = 0;
  for (size_t i = 0; i < questions.size(); ++i) {
    std::vector<double> values = scored.log_probabilities[i];
    for (size_t k = 0; k < values.size(); ++k) values[k] /= static_cast<double>(length(questions[i].choices[k]));
    right += std::max_element(values.begin(), values.end()) - values.begin() == questions[i].answer;
  }
  return static_cast<double>(right) / static_cast<double>(questions.size());
}

}  // namespace

std::string evaluate_choices(
    const std::string& file, const std::vector<std::string>& runs, const ModelOptions& model, int64_t batch, bool as_json) {
  const std::vector<Question> questions = read_questions(file);
  std::vector<ScoredRun> scored;
  for (const std::string& run : runs) scored.push_back(score(open_model(run, model), questions, batch));
  const auto others = static_cast<double>(questions.size() - 1);
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), scored, value); };
  add({.heading = "run", .left = true}, [](const ScoredRun& s) { return s.run.label(); });
  add({.key = "run"}, [](const ScoredRun& s) { return s.run.text(); });
  add({.key = "text"}, [&](const ScoredRun&) { return file; });
  add({.key = "questions"}, [&](const ScoredRun&) { return questions.size(); });
  add({.heading = "context", .key = "context"}, &ScoredRun::context);
  const auto add_share = [&](const std::string& name, const auto& length) {
    const auto share = [&](const ScoredRun& s) { return accuracy(s, questions, length); };
    add({.heading = name, .key = name, .format = "{:.4f}"}, share);
    add({.heading = "stderr", .key = name + "_stderr", .format = "±{:.4f}"},
        [&](const ScoredRun& s) { return others > 0 ? Json(std::sqrt(share(s) * (1 - share(s)) / others)) : Json(); });
  };
  add_share("acc", [](const std::string&) { return 1; });
  add_share("acc_norm", count_characters);
  add_share("acc_bytes", [](const std::string& choice) { return choice.size(); });
  add({.key = "log_probabilities"}, &ScoredRun::log_probabilities);
  return as_json ? to_text(json_of(table), 1) : file + ": " + counted(std::ssize(questions), "question") + "\n" + text_of(table);
}

}  // namespace ricci::apps
