// Tokenizers and chat templates in transformers' file formats.
#include <algorithm>
#include <array>
#include <utility>

#include "apps/interop/hugging_face.h"
#include "core/error.h"
#include "core/files/file.h"
#include "data/text/utf8.h"
#include "data/tokenizers/kinds.h"
#include "data/tokenizers/piece_tokenizer.h"

namespace ricci::apps {
namespace {

constexpr const char* kTokenizerConfig = "/tokenizer_config.json";

constexpr int64_t kMaxTemplate = 16 << 20;

// True if the template's markers are added tokens.
bool can_write(const std::string& ours, const std::shared_ptr<const Tokenizer>& tokenizer) {
  try {
    const ChatEncoder checked(tokenizer, chat_template({ours}));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Reads a JSON file. A missing file gives a value without members.
Json find_json(const std::string& path) { return is_there(path) ? read_json(path) : Json(); }

// The bos_token in tokenizer_config.json (a string, or an object with a string), or empty.
std::string begin_of_text(const Json& settings) {
  const Json &token = member(settings, "bos_token"), &content = token.is_string() ? token : member(token, "content");
  return as<std::string>(content).value_or("");
}

// The ids in a config member: one, a list or none. Omits ids that the tokenizer lacks.
std::vector<int64_t> ids_of(const Json& value, const Tokenizer& tokenizer) {
  std::vector<int64_t> ids;
  for (const Json& each : value.is_array() ? value : Json::array({value}))
    if (const auto id = as<int64_t>(each); id && *id >= 0 && *id < tokenizer.vocab_size()) ids.push_back(*id);
  return ids;
}

// The tokens that mark a text, from config.json and generation_config.json. Like transformers 5, this ignores add_bos_token: the template
// in tokenizer.json decides whether a token starts every text.
Marks marks_in(const std::string& folder, const Json& config, const Tokenizer& tokenizer) {
  Marks marks{.ends = ids_of(member(config, "eos_token_id"), tokenizer)};
  if (const auto begin = ids_of(member(config, "bos_token_id"), tokenizer); !begin.empty()) marks.begin = begin[0];
  const Json generation = find_json(folder + "/generation_config.json");
  if (const auto ends = ids_of(member(generation, "eos_token_id"), tokenizer); !ends.empty()) marks.ends = ends;
  return marks;
}

}  // namespace

std::shared_ptr<const Tokenizer> read_hf_tokenizer(const std::string& folder, const Json& config) {
  if (find_tokenizer_file(folder).empty()) return nullptr;
  try {
    const std::shared_ptr<const Tokenizer> tokenizer = open_tokenizer(folder);
    return with_additions(*tokenizer, {.marks = marks_in(folder, config, *tokenizer)});
  } catch (const Error& error) {
    fail("{}; add --without-tokenizer to omit the tokenizer", {error.what()});
  }
}

std::string hf_tokenizer_json(const Tokenizer* tokenizer) {
  if (!dynamic_cast<const PieceTokenizer*>(tokenizer) || tokenizer->eos() == Eos::line) return "";
  Json json = tokenizer->model_json();
  for (Json& token : json["added_tokens"])  // config.json contains these marks, and transformers rejects them in tokenizer.json
    for (const char* mark : {"bos", "eos"}) token.erase(mark);
  return json.dump();
}

std::string default_template(const ImportedTemplate& kept, const std::string& origin) {
  if (!kept.file.empty() || kept.member.empty()) return kept.file;
  const Json value = parse_json(kept.member, kTemplateMember);
  if (value.is_string()) return value.get<std::string>();
  const auto reject = [&] {
    fail("{}: {}: expected a string, or a list of objects with a \"name\" and a \"template\"", {origin, kTemplateMember});
  };
  if (!value.is_array()) reject();
  std::string chosen;
  for (const Json& each : value) {
    const Json &name = member(each, "name"), &text = member(each, "template");
    if (!name.is_string() || !text.is_string()) reject();
    if (&each == &value[0] || name == "default") chosen = text.get<std::string>();
  }
  return chosen;
}

std::string hf_tokenizer_config_json(const Tokenizer& tokenizer, const Marks& marks, int64_t context, const std::string& member) {
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"model_max_length", context}};
  const auto text = [&](int64_t id) { return tokenizer.decode({&id, 1}); };
  if (marks.begin >= 0) config["bos_token"] = text(marks.begin);
  if (!marks.ends.empty()) config["eos_token"] = text(marks.ends[0]);
  if (!member.empty()) config[kTemplateMember] = parse_json(member, kTemplateMember);
  return to_text(config, 2) + "\n";
}

HfChatTemplate read_hf_chat_template(const std::string& folder, const std::shared_ptr<const Tokenizer>& tokenizer) {
  const std::string file = folder + "/" + kTemplateFile, config = folder + kTokenizerConfig;
  HfChatTemplate chat;
  try {
    if (const auto text = find_text(file, kMaxTemplate)) check_utf8(file, chat.kept.file = *text, 0);
    if (const Json found = find_json(config); !member(found, kTemplateMember).is_null())
      chat.kept.member = member(found, kTemplateMember).dump();
    if (chat.kept.empty()) return chat;
    const std::string from = chat.kept.file.empty() ? config : file;
    if (!tokenizer) return {.note = format_message("\n{}: the template is not imported without a tokenizer", {from})};
    const auto [ours, adds_system] = known_template(default_template(chat.kept, config), begin_of_text(find_json(config)));
    const bool has_markers = !ours.empty() && can_write(ours, tokenizer);
    if (has_markers) chat.named = {ours};
    std::string what = ours.empty() ? "is neither chatml nor llama3" : "is " + ours;
    if (!ours.empty() && !has_markers) what += ", but its tokenizer lacks the markers";
    else if (adds_system) what += " that adds a system message;\nhere this message belongs in the data";
    chat.note = format_message("\nchat: {}: {} {}\nthe run keeps this template for exports", {has_markers ? ours : "none", from, what});
  } catch (const Error& error) {
    fail("{}; add --without-tokenizer to omit the tokenizer", {error.what()});
  }
  return chat;
}

ImportedTemplate template_to_export(const RunFolder& run) {
  ImportedTemplate kept = read_template(run.path());
  if (kept.empty() && has_chat(run.config())) kept.file = to_jinja(chat_template(run.config().chat));
  return kept;
}

Marks marks_to_export(const RunFolder& run) {
  const Tokenizer* const tokenizer = run.tokenizer().get();
  Marks marks = tokenizer ? tokenizer->marks() : Marks();
  if (marks.begin < 0) marks.begin = marks.first;
  const std::string last = tokenizer ? end_of_text(*tokenizer) : "";
  const bool is_between =
      marks.ends.empty() || tokenizer->eos() == Eos::document;  // a document's end token also precedes the next document
  if (marks.ends.empty() && !last.empty()) marks.ends = {tokenizer->find(last)};
  if (marks.begin < 0 && is_between && !last.empty()) marks.begin = marks.ends[0];
  if (tokenizer) marks.ends = with_answer_end(marks.ends, run.config(), *tokenizer);
  return marks;
}

void add_marks(Json& config, const Marks& marks) {
  config["bos_token_id"] = marks.begin < 0 ? Json() : Json(marks.begin);
  Json& ends = config["eos_token_id"] = marks.ends;
  if (marks.ends.size() == 1) ends = marks.ends[0];
  if (marks.ends.empty()) ends = nullptr;
}

}  // namespace ricci::apps
