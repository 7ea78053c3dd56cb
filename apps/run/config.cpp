// Reads YAML run files into settings with their source lines, and writes YAML.
#include "apps/run/config.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "apps/terminal/cli.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/nearest.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

constexpr int kMostBases = 8;  // in a chain

// ---- YAML
// Checks the text before yaml-cpp builds nodes. yaml-cpp overflows the stack on deep nesting, an alias can expand to a million values, and
// a comma silently ends a document.
class Guard final : public YAML::EventHandler {
 public:
  Guard(const std::string& text, const std::string& source, bool has_lines) : text_(text), source_(source), has_lines_(has_lines) {}

  [[noreturn]] void reject(const YAML::Mark& mark, const std::string& fault) const {
    const auto last = std::count(text_.begin(), text_.end(), '\n');
    const std::string line = has_lines_ && !mark.is_null() ? ":" + std::to_string(std::min<int64_t>(mark.line, last) + 1) : "";
    fail("{}{}: {}", {source_, line, fault});
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    const char next = mark.pos >= 0 && static_cast<size_t>(mark.pos) < text_.size() ? text_[static_cast<size_t>(mark.pos)] : ' ';
    if (next == ',' || next == ']' || next == '}')
      reject(mark, std::string("not YAML: unexpected '") + next + "'; text that starts with it needs quotes");
    fail("{}: expected one YAML document, got more", {source_});
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { reject(mark, "aliases are not supported; base: FILE shares keys"); }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { open(mark); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { open(mark); }
  void OnSequenceEnd() override { --depth_; }
  void OnMapEnd() override { --depth_; }

 private:
  void open(const YAML::Mark& mark) {
    if (++depth_ > kDeepestYaml) reject(mark, format_message("lists and mappings are nested more than {} deep", {kDeepestYaml}));
  }

  const std::string &text_, &source_;
  bool has_lines_;
  int documents_ = 0, depth_ = 0;
};

std::string describe(const YAML::Node& node) {
  if (node.IsScalar()) return "'" + one_line(node.Scalar()) + "'";
  if (node.IsSequence()) return "a list";
  return node.IsMap() ? "keys and values" : "nothing";
}

}  // namespace

// ---- Unknown keys
const std::vector<std::pair<std::string_view, std::vector<std::string_view>>> kOtherNames = {{"lr", {"learning_rate"}},
    {"steps", {"max_iters", "max_steps"}}, {"schedule_steps", {"lr_decay_iters"}}, {"warmup", {"warmup_iters", "warmup_steps"}},
    {"schedule", {"decay_lr", "lr_scheduler_type"}}, {"clip", {"grad_clip", "max_grad_norm"}},
    {"batch", {"batch_size", "per_device_train_batch_size"}}, {"accumulation", {"gradient_accumulation_steps"}},
    {"eval_every", {"eval_interval", "eval_steps"}}, {"eval_batches", {"eval_iters"}}, {"log_every", {"log_interval", "logging_steps"}},
    {"init", {"init_from"}}, {"name", {"out_dir", "wandb_run_name", "output_dir"}}, {"data", {"dataset", "input", "train_file"}},
    {"precision", {"dtype"}}, {"model.ctx", {"block_size", "n_positions", "n_ctx", "max_position_embeddings", "context_length"}},
    {"model.layers", {"n_layer", "num_hidden_layers", "num_layers"}}, {"model.heads", {"n_head", "num_attention_heads", "num_heads"}},
    {"model.kv_heads", {"num_key_value_heads"}}, {"model.head_width", {"head_dim"}},
    {"model.norm_eps", {"rms_norm_eps", "layer_norm_epsilon"}}, {"model.activation", {"hidden_act", "activation_function"}},
    {"model.d", {"n_embd", "hidden_size", "d_model"}}, {"model.bias", {"bias"}}, {"model.dropout", {"dropout", "attention_dropout"}},
    {"model.vocab", {"vocab_size"}}, {"checkpoint_every", {"save_steps", "save_every", "save_interval"}},
    {"keep_checkpoints", {"save_total_limit"}}, {"beta1", {"adam_beta1"}}, {"beta2", {"adam_beta2"}}, {"eps", {"adam_epsilon"}},
    {"optimizer", {"optim"}}, {"patience", {"early_stopping_patience"}}, {"recompute", {"gradient_checkpointing"}},
    {"model.ff", {"intermediate_size", "n_inner"}}, {"context", {"seq_len", "seq_length", "sequence_length", "max_seq_length"}},
    {"model.family", {"model_type"}}, {"model.tie", {"tie_embeddings", "tie_word_embeddings"}}, {"validation", {"validation_file"}},
    {"model.classes", {"num_labels"}}};

namespace {

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

// Suggests our name for an unknown key, or the nearest known key or section, unless two are equally near. A wrong section adds 1 to the
// edit distance.
std::string suggestion_for(const std::string& key, const std::vector<Field>& fields) {
  const std::string start = key.substr(0, 100);
  for (const auto& [here, there] : kOtherNames)
    if (std::find(there.begin(), there.end(), last_part(start)) != there.end()) return format_message(", here it is '{}'", {here});
  std::map<std::string_view, size_t> distances;
  const auto add = [&](std::string_view known, size_t distance) {
    const auto [found, is_new] = distances.try_emplace(known, distance);
    found->second = std::min(found->second, distance);
  };
  for (const auto& [here, there] : kOtherNames)
    for (const std::string_view name : there) add(here, edit_distance(last_part(start), name) + 1);
  for (const Field& field : fields) {
    const std::string_view known = field.key, section = known.substr(0, known.find('.'));
    add(known, std::min(edit_distance(start, known), edit_distance(last_part(start), last_part(known)) + 1));
    if (section != known) add(section, std::min(edit_distance(start, section), edit_distance(last_part(start), section) + 1));
  }
  const auto by_distance = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto nearest = std::min_element(distances.begin(), distances.end(), by_distance);
  const std::string_view best = nearest->first;
  const size_t least = nearest->second;
  const bool is_unique = std::count_if(distances.begin(), distances.end(), [&](const auto& each) { return each.second == least; }) == 1;
  if (is_unique && (last_part(start) == last_part(best) || is_near(least, last_part(start).size())))
    return format_message(", the nearest known key is '{}'", {best});
  return "; --help-config prints every key";
}

bool is_known(const std::vector<Field>& fields, const std::string& key) {
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.key == key; });
}

bool is_section(const std::vector<Field>& fields, const std::string& key) {
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.key.starts_with(key + "."); });
}

// ---- Settings
// Appends the keys of one file, or of the command line, to a list of settings.
struct Reader {
  const std::vector<Field>& fields;
  Settings& settings;
  std::string source;  // a file, or "command line"
  bool has_lines = true;
  std::string folder = {};  // as in Setting
  std::set<std::string> seen = {};

  std::string place(const YAML::Node& node) const { return has_lines ? source + ":" + std::to_string(node.Mark().line + 1) : source; }
  void add(const std::string& key, const std::string& where, const YAML::Node& value) {
    if (is_section(fields, key)) return add_section(key + ".", where, value);
    if (!is_known(fields, key)) fail("{}: unknown key '{}'{}", {where, one_line(key), suggestion_for(key, fields)});
    const bool again = !seen.insert(key).second;
    if (again && has_lines) fail("{}: {} is given twice", {where, key});
    const auto is_list = [&](const Field& f) { return f.key == key && std::holds_alternative<std::vector<std::string>*>(f.value); };
    if (again && std::any_of(fields.begin(), fields.end(), is_list)) fail("{0}: {1} is given twice; {1}='[A, B]' gives both", {where, key});
    settings.push_back({key, where, std::make_shared<const YAML::Node>(value), folder});
  }
  void add_section(const std::string& prefix, const std::string& where, const YAML::Node& node) {
    if (node.IsNull()) return;
    if (!node.IsMap()) {
      const std::string name = prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1) + ": ";
      fail("{}: {}expected keys and values, got {}", {where, name, describe(node)});
    }
    for (const auto& item : node) {
      const YAML::Node& key = item.first;
      if (!key.IsScalar()) fail("{}: expected a key, got {}", {place(key), describe(key)});
      if (prefix.empty() && key.Scalar() == "base") {  // read_file reads it
        if (!seen.insert("base").second) fail("{}: the key base is given twice", {place(key)});
        continue;
      }
      add(prefix + key.Scalar(), place(key), item.second);
    }
  }
};

// Throws Error if the first line of a run's config.yaml names a version that is too old.
void check_version(const std::string& path, const std::string& build) {
  constexpr std::array oldest = {0, 3, 0};
  std::array<int, 3> version = oldest;
  std::sscanf(build.c_str(), "ricci %d.%d.%d", &version[0], &version[1], &version[2]);
  if (version < oldest) fail("{}: was made by {}; this version reads runs of 0.3.0 or later", {path, build.substr(0, build.find(','))});
}

// Appends the settings of a run file after its base file's settings.
void read_file(const std::string& path, int bases, const std::vector<Field>& fields, Settings& settings) {
  const bool is_yaml = path.ends_with(".yaml") || path.ends_with(".yml");
  try {
    const std::string text = read_text(path, kMaxYaml), build = build_line(text), folder = fs::path(path).parent_path();
    check_version(path, build);
    // A run folder contains only its own files, so no paths are searched for in a run folder.
    Reader file{.fields = fields, .settings = settings, .source = path, .folder = build.empty() ? folder : ""};
    const YAML::Node root = parse_yaml(text, path, true);
    if (!is_yaml && root.IsNull()) fail("{}: contains no keys", {path});
    if (const YAML::Node base = root.IsMap() ? root["base"] : YAML::Node(); base && !base.IsNull()) {
      if (!base.IsScalar()) fail("{}: base: expected a run file, got {}", {file.place(base), describe(base)});
      if (bases == kMostBases) fail("{}: base: the chain has more than {} files", {file.place(base), kMostBases});
      read_file(fs::path(folder) / base.Scalar(), bases + 1, fields, settings);
    }
    file.add_section("", file.place(root), root);
  } catch (const Error& error) {
    if (is_yaml || !is_file(path)) throw;
    fail("{} ({} is read as a run file; to train on it as a text, use data={})", {error.what(), path, path});
  }
}

// Parses a value from the command line. Only quotes and brackets are read as YAML; elsewhere # and : are text.
YAML::Node value_of_word(const std::string& word, const std::string& source) {
  constexpr std::string_view opening = "\"'[{", closing = "\"']}";
  if (word.empty() || word == "null" || word == "~") return YAML::Node();
  const size_t kind = opening.find(word[0]);
  if (kind == opening.npos) return YAML::Node(word);
  const YAML::Node value = parse_yaml(word, source, false);
  if (word.back() != closing[kind]) fail("{}: expected {} at the end of the value", {source, std::string(1, closing[kind])});
  return value;
}

// Appends KEY=VALUE to the list; ~KEY drops the earlier settings of a key or a section.
void read_override(const std::string& word, Reader& line) {
  if (word.starts_with('~')) {
    const std::string key = word.substr(1, word.find('=') - 1);
    if (!is_known(line.fields, key) && !is_section(line.fields, key))
      fail("{}: unknown key '{}'{}", {line.source, one_line(key), suggestion_for(key, line.fields)});
    if (key.size() + 1 < word.size())
      fail("{}: ~{} removes the key and allows no value; expected ~{}, got '{}'", {line.source, key, key, one_line(word)});
    std::erase_if(line.settings, [&](const Setting& each) { return each.key == key || each.key.starts_with(key + "."); });
    return;
  }
  const size_t equals = word.find('=');
  if (equals == word.npos || equals == 0) fail("{}: expected key=value, got '{}'", {line.source, one_line(word)});
  line.add(word.substr(0, equals), line.source, value_of_word(word.substr(equals + 1), line.source + ": " + one_line(word)));
}

// ---- Storing
void store(const Setting& setting, const Field& field) {
  if (!parse_value(*setting.value, field))
    fail("{}: {}: expected {}, got {}", {setting.place, field.key, expected_value(field), describe(value_for(field, *setting.value))});
  each_path(field, [&](std::string& path) {
    if (setting.folder.empty() || path.empty() || path.starts_with('/')) return;
    const fs::path folder = setting.folder;
    const bool names_weights = field.key == "init";  // such as ../runs/a@best
    if (is_there(folder / path) || (names_weights && is_there(folder / path.substr(0, path.rfind('@'))))) path = folder / path;
  });
}

bool leaves_choice(const Setting& setting, const Field& field) { return field.follows_choices && setting.value->IsNull(); }

// Returns the fields that read the setting's key: one, or one for each mixer. Empty only if the setting is optional.
std::vector<Field> readers_of(const Setting& setting, const std::vector<Field>& fields) {
  std::vector<Field> readers;
  std::string others;
  for (const Field& field : fields) {
    if (field.key != setting.key) continue;
    if (field.is_read) readers.push_back(field);
    else others += (others.empty() ? "" : ", ") + field.by;
  }
  if (readers.empty() && !setting.is_optional) fail("{}: {}: is read only with {}", {setting.place, setting.key, others});
  return readers;
}

// Throws Error if a mapping such as {sdp: 4, dispatcher: 1} names a mixer that does not use the key.
void check_mixers(const Setting& setting, const std::vector<Field>& readers) {
  std::vector<std::string> mixers;
  for (const Field& field : readers) mixers.push_back(mixer_of(field));
  for (const auto& entry : *setting.value) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (std::find(mixers.begin(), mixers.end(), name) == mixers.end())
      fail("{}: {}: no layer has the mixer '{}', expected {}",
          {setting.place, setting.key, one_line(name), fmt::format("{}", fmt::join(mixers, ", "))});
  }
}

// ---- Printing
std::string comment_of(const Field& field) {
  std::string text = (field.follows_choices ? value_text(field) + "; " : "") + field.description;
  const auto add_names = [&](const auto* choice) {
    if (choice) text += fmt::format(": {}", fmt::join(choice->names, " | "));
  };
  add_names(std::get_if<ChoiceMember>(&field.value));
  add_names(std::get_if<ChoiceListMember>(&field.value));
  return field.by.empty() ? text : text + "; only " + field.by;
}

// Returns a line with its comment, wrapped for a terminal.
std::string with_comment(const std::string& start, const std::string& comment) {
  constexpr size_t kColumn = 27;
  std::string text = wrapped(comment, kColumn + 2, kColumn + 2);
  text.pop_back();
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n', end + 1)) text.replace(end + 1 + kColumn, 2, "# ");
  return fmt::format("{:<{}}# {}", start, kColumn, text);
}

// Returns a line for each key, by section. Keys that the config does not read are comments. value(field, start) completes a line.
template <class Value> std::string lines(const std::vector<Field>& fields, const Value& value) {
  std::string all, section;
  for (const Field& field : fields) {
    const std::string before = std::exchange(section, field.key.substr(0, field.key.rfind('.') + 1));
    if (section != before && !section.empty()) all += section.substr(0, section.size() - 1) + ":\n";
    const std::string start = (section.empty() ? "" : "  ") + std::string(field.is_read ? "" : "# ") + field.key.substr(section.size());
    all += value(field, start + ": ") + "\n";
  }
  return all;
}

}  // namespace

YAML::Node parse_yaml(const std::string& text, const std::string& source, bool has_lines) {
  if (static_cast<int64_t>(text.size()) > kMaxYaml) fail("{}: has {} bytes, expected at most {}", {source, text.size(), kMaxYaml});
  Guard guard(text, source, has_lines);
  // Without a final comment, yaml-cpp would accept the last line end as the end of an open quote.
  const std::string ended = has_lines ? text + "\n#" : text;
  try {
    std::istringstream input(ended);
    YAML::Parser parser(input);
    while (parser.HandleNextDocument(guard)) {
    }
    return YAML::Load(ended);
  } catch (const YAML::Exception& error) {
    guard.reject(error.mark, "not YAML: " + error.msg);
  }
}

Settings settings_of(const std::string& path, const std::vector<std::string>& overrides, const std::vector<Field>& fields) {
  Settings settings;
  if (!path.empty()) read_file(path, 0, fields, settings);
  Reader line{.fields = fields, .settings = settings, .source = "command line", .has_lines = false};
  for (const std::string& word : overrides) read_override(word, line);
  return settings;
}

Settings recorded_settings(const std::string& yaml, const std::string& source, const std::vector<Field>& fields) {
  Settings settings;
  Reader record{.fields = fields, .settings = settings, .source = source, .has_lines = false};
  record.add_section("", source, parse_yaml(yaml, source, true));
  return settings;
}

const Setting* find_setting(const Settings& settings, std::string_view key) {
  const auto found = std::find_if(settings.rbegin(), settings.rend(), [&](const Setting& setting) { return setting.key == key; });
  return found == settings.rend() ? nullptr : &*found;
}

void store_choices(const Settings& settings, const std::vector<Field>& fields) {
  for (const Field& field : fields)
    if (const Setting* const setting = find_setting(settings, field.key); setting && field.is_deciding && !leaves_choice(*setting, field))
      store(*setting, field);
}

std::set<std::string> store(const Settings& settings, const std::vector<Field>& fields) {
  std::set<std::string> given;
  for (const Setting& setting : settings) {
    if (find_setting(settings, setting.key) != &setting) continue;
    const std::vector<Field> readers = readers_of(setting, fields);
    if (readers.empty() || leaves_choice(setting, readers[0])) continue;
    if (setting.value->IsMap() && !mixer_of(readers[0]).empty()) check_mixers(setting, readers);
    for (const Field& field : readers) store(setting, field);
    if (!setting.value->IsNull()) given.insert(setting.key);
  }
  return given;
}

std::string build_line(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.starts_with("# ricci ") ? std::string(line.substr(2)) : "";
}

std::string to_yaml(const std::vector<Field>& fields) {
  std::set<std::string> keys;
  std::vector<Field> once = fields;
  std::erase_if(once, [&](const Field& field) { return !keys.insert(field.key).second; });
  return lines(once, [&](const Field& field, const std::string& start) { return start + value_text(fields, field.key); });
}

std::string describe(const std::vector<Field>& fields, const std::string& group) {
  std::vector<std::string> groups;
  std::map<std::string, std::vector<Field>> fields_in;
  for (const Field& field : fields) {
    if (!fields_in.contains(field.group)) groups.emplace_back(field.group);
    fields_in[field.group].push_back(field);
  }
  std::string text;
  for (const std::string& name : groups) {
    if (!group.empty() && group != name) continue;
    text += (text.empty() ? "# ---- " : "\n# ---- ") + name + "\n";
    if (name == groups[0]) text += with_comment("# base: other.yaml", "a run file; its keys come first") + "\n";
    text += lines(fields_in[name], [&](const Field& field, const std::string& start) {
      return with_comment(start + (field.follows_choices ? "null" : value_text(field)), comment_of(field));
    });
  }
  if (text.empty())
    fail("no group of keys '{}'{}; the groups are {}",
        {one_line(group), nearest_note(group, groups), fmt::format("{}", fmt::join(groups, ", "))});
  return text;
}

}  // namespace ricci::apps
