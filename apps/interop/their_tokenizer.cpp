#include "apps/interop/their_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "core/json/file.h"
#include "core/json/value.h"
#include "data/text/utf8.h"
#include "data/tokenizers/kinds.h"
#include "data/tokenizers/piece_tokenizer.h"

namespace ricci::apps {
namespace {

constexpr const char* kTokenizerConfig = "/tokenizer_config.json";

// Templates of conversations, and the markers that name one of ours. Phi's has the markers of chatml and one more.
constexpr int64_t kMaxTemplate = 16 << 20;
constexpr const char *kOthers = "additional_chat_templates", *kOfPhi = "<|im_sep|>";
constexpr std::pair<const char*, std::array<const char*, 3>> kMarkers[] = {
    {"chatml", {"<|im_start|>", "<|im_end|>", ""}}, {"llama3", {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}}};

// Returns an empty text where it is none of ours.
std::string ours_by_markers(const std::string& text) {
  const auto has = [&](const char* marker) { return text.find(marker) != text.npos; };
  for (const auto& [ours, markers] : kMarkers)
    if (std::all_of(markers.begin(), markers.end(), has) && !has(kOfPhi)) return ours;
  return "";
}

// True if the markers are added tokens of the tokenizer.
bool can_write(const std::string& ours, const std::shared_ptr<const Tokenizer>& tokenizer) {
  try {
    const ChatEncoder checked(tokenizer, chat_template({ours}));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The ids that a config has for a key, one, several or none; ids without a piece are left out.
std::vector<int64_t> ids_of(const JsonValue& value, const Tokenizer& tokenizer) {
  std::vector<int64_t> ids;
  for (const JsonValue& each : value.is_list() ? value.items() : JsonValue::List{value})
    if (each.is_integer() && each.integer() >= 0 && each.integer() < tokenizer.vocab_size()) ids.push_back(each.integer());
  return ids;
}

// Reads the tokens that mark a text from config.json, generation_config.json and tokenizer_config.json of the folder.
Marks marks_in(const std::string& folder, const JsonFile& config, const Tokenizer& tokenizer) {
  Marks marks{.ends = ids_of(config.value("eos_token_id"), tokenizer)};
  if (const auto begin = ids_of(config.value("bos_token_id"), tokenizer); !begin.empty()) marks.begin = begin[0];
  const JsonFile generation = JsonFile::if_there(folder + "/generation_config.json"), said = JsonFile::if_there(folder + kTokenizerConfig);
  if (const auto ends = ids_of(generation.value("eos_token_id"), tokenizer); !ends.empty()) marks.ends = ends;
  const JsonValue &token = said.value("bos_token"), &content = token.is_text() ? token : token["content"];
  if (said.flag("add_bos_token").value_or(false) && content.is_text()) marks.first = tokenizer.find(content.text());
  return marks;
}

}  // namespace

std::shared_ptr<const Tokenizer> read_their_tokenizer(const std::string& folder, const JsonFile& config) {
  if (tokenizer_file_in(folder).empty()) return nullptr;
  try {
    const std::shared_ptr<const Tokenizer> tokenizer = open_tokenizer(folder);
    return with_additions(*tokenizer, {.marks = marks_in(folder, config, *tokenizer)});
  } catch (const Error& error) {
    fail("{}; --without-tokenizer leaves it out", {error.what()});
  }
}

std::string their_tokenizer(const Tokenizer* tokenizer) {
  if (!dynamic_cast<const PieceTokenizer*>(tokenizer) || tokenizer->eos() == Eos::line) return "";
  std::string json = tokenizer->model_json();
  for (const std::string mark : {R"(,"bos":true)", R"(,"eos":true)"})  // config.json has them; transformers complains of them here
    for (size_t place = json.find(mark); place != json.npos; place = json.find(mark, place)) json.erase(place, mark.size());
  return json;
}

std::string text_of(const ImportedTemplate& talks, const std::string& origin) {
  if (!talks.file.empty() || talks.member.empty()) return talks.file;
  const JsonValue value = parse_json(talks.member, kTemplateMember);
  if (value.is_text()) return value.text();
  const auto reject = [&] {
    fail("{}: {}: expected a text, or a list of objects with a \"name\" and a \"template\"", {origin, kTemplateMember});
  };
  if (!value.is_list()) reject();
  std::string chosen;
  for (const JsonValue& each : value.items()) {
    if (!each["name"].is_text() || !each["template"].is_text()) reject();
    if (&each == &value.items().front() || each["name"].text() == "default") chosen = each["template"].text();
  }
  return chosen;
}

std::string tokenizer_config(const Tokenizer& tokenizer, const Marks& marks, int64_t context, const std::string& talks) {
  Object config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"model_max_length", context}};
  const auto text = [&](int64_t id) { return tokenizer.decode({&id, 1}); };
  if (marks.begin >= 0) config.emplace_back("bos_token", text(marks.begin));
  if (!marks.ends.empty()) config.emplace_back("eos_token", text(marks.ends[0]));
  std::string json = json_text(config, 2) + "\n";
  if (!talks.empty()) json.replace(json.rfind("\n}"), 1, ",\n  " + quoted_json(kTemplateMember) + ": " + talks + "\n");
  return json;
}

TheirTalks read_their_talks(const std::string& folder, const std::shared_ptr<const Tokenizer>& tokenizer) {
  const std::string file = folder + "/" + kTemplateFile, config = folder + kTokenizerConfig;
  TheirTalks talks;
  try {
    if (is_there(file)) check_utf8(file, talks.kept.file = read_text(file, kMaxTemplate), 0);
    if (const JsonValue member = JsonFile::if_there(config).value(kTemplateMember); !member.is_null()) talks.kept.member = member.to_json();
    if (talks.kept.empty()) return talks;
    const std::string from = talks.kept.file.empty() ? config : file;
    if (!tokenizer) return {.note = format_message("\n{}: its template is left out, as the folder has no tokenizer", {from})};
    const std::string ours = ours_by_markers(text_of(talks.kept, config));
    const bool has_markers = !ours.empty() && can_write(ours, tokenizer);
    if (has_markers) talks.chat = {ours};
    std::string why = ours.empty() ? "neither chatml nor llama3" : ours;
    if (!ours.empty() && !has_markers) why += ", which its tokenizer lacks";
    talks.note = format_message("\nchat: {}: {} has the markers of {}; the run keeps this template for exports{}",
        {has_markers ? ours : "none", from, why, is_there(folder + "/" + kOthers) ? std::string(", and not ") + kOthers : ""});
  } catch (const Error& error) {
    fail("{}; --without-tokenizer leaves it out", {error.what()});
  }
  return talks;
}

ImportedTemplate talks_of(const RunFolder& run) {
  ImportedTemplate talks = read_template(run.folder());
  if (talks.empty() && has_chat(run.config())) talks.file = chat_jinja(chat_template(run.config().chat));
  return talks;
}

std::string chat_jinja(const ChatTemplate& form) {
  const auto message = [&](const std::string& text) {
    const size_t place = text.find(kContent);
    return "{{ " + quoted_json(text.substr(0, place)) + " + message[\"content\"]" + (form.trims ? " | trim" : "") + " + " +
           quoted_json(text.substr(place + kContent.size())) + " }}";
  };
  return "{{ " + quoted_json(form.start) + R"( }}{% for message in messages %}{% if message["role"] == "system" %})" +
         message(form.system) + R"({% elif message["role"] == "user" %})" + message(form.user) +
         R"({% elif message["role"] == "assistant" %})" + message(form.assistant) +
         R"({% else %}{{ raise_exception("a role other than system, user and assistant") }}{% endif %}{% endfor %})" +
         "{% if add_generation_prompt %}{{ " + quoted_json(form.answer) + " }}{% endif %}";
}

Marks marks_of(const RunFolder& run) {
  const Tokenizer* const tokenizer = run.tokenizer().get();
  Marks marks = tokenizer ? tokenizer->marks() : Marks();
  if (marks.begin < 0) marks.begin = marks.first;
  const std::string last = tokenizer ? end_of_text(*tokenizer) : "";
  const bool is_between = marks.ends.empty() || tokenizer->eos() == Eos::document;  // texts: the end of one is before the next
  if (marks.ends.empty() && !last.empty()) marks.ends = {tokenizer->find(last)};
  if (marks.begin < 0 && is_between && !last.empty()) marks.begin = marks.ends[0];
  if (tokenizer) marks.ends = with_answer_end(marks.ends, run.config(), *tokenizer);
  return marks;
}

void add_marks(Object& config, const Marks& marks) {
  config.emplace_back("bos_token_id", marks.begin < 0 ? Value(nullptr) : Value(marks.begin));
  const Value::List ends(marks.ends.begin(), marks.ends.end());
  if (ends.size() > 1) config.emplace_back("eos_token_id", ends);
  else config.emplace_back("eos_token_id", ends.empty() ? Value(nullptr) : ends[0]);
}

}  // namespace ricci::apps
