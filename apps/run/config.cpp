// Run files: keys and their places, what decides and what follows; and the same written as YAML.
#include "apps/run/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "apps/terminal/nearest.h"
#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

using Kind = YamlValue::Kind;

std::string shown(const YamlValue& node) {
  if (node.kind == Kind::text) return "'" + one_line(node.text) + "'";
  if (node.kind == Kind::list) return "a list";
  return node.kind == Kind::keys ? "keys and values" : "nothing";
}

struct Setting {
  std::string key, place;  // place: "run.yaml:3" or "command line"
  YamlValue value;
  bool may_be_unread = false;
  std::string folder = {};  // beside which paths are; empty on the command line
  bool takes_back = false;  // drops the earlier settings of the key
};

// A path that a run file gives is looked for beside that file first.
void look_beside(const Setting& setting, std::string& path) {
  if (setting.folder.empty() || path.empty() || path.starts_with('/')) return;
  if (const std::string beside = fs::path(setting.folder) / path; is_there(beside)) path = beside;
}

void store(const Setting& setting, const Field& field) {
  if (!parse_value(setting.value, field))
    fail("{}: {}: expected {}, got {}", {setting.place, field.key, expected_value(field), shown(setting.value)});
  each_path(field, [&](std::string& path) { look_beside(setting, path); });
}

// ---- Unknown keys
// Our keys, and their names in nanoGPT (train.py, model.py) and in transformers (TrainingArguments, configurations of models).
const std::vector<OtherNames> kOtherNames = {
    {"lr", {"learning_rate"}},
    {"steps", {"max_iters", "max_steps"}},
    {"schedule_steps", {"lr_decay_iters"}},
    {"warmup", {"warmup_iters", "warmup_steps"}},
    {"schedule", {"decay_lr", "lr_scheduler_type"}},
    {"clip", {"grad_clip", "max_grad_norm"}},
    {"batch", {"batch_size", "per_device_train_batch_size"}},
    {"accumulation", {"gradient_accumulation_steps"}},
    {"eval_every", {"eval_interval", "eval_steps"}},
    {"eval_batches", {"eval_iters"}},
    {"log_every", {"log_interval", "logging_steps"}},
    {"init", {"init_from"}},
    {"name", {"out_dir", "wandb_run_name", "output_dir"}},
    {"data", {"dataset", "input", "train_file"}},
    {"precision", {"dtype"}},
    {"model.ctx", {"block_size", "n_positions", "n_ctx", "max_position_embeddings", "context_length"}},
    {"model.layers", {"n_layer", "num_hidden_layers", "num_layers"}},
    {"model.heads", {"n_head", "num_attention_heads", "num_heads"}},
    {"model.kv_heads", {"num_key_value_heads"}},
    {"model.head_width", {"head_dim"}},
    {"model.norm_eps", {"rms_norm_eps", "layer_norm_epsilon"}},
    {"model.activation", {"hidden_act", "activation_function"}},
    {"model.d", {"n_embd", "hidden_size", "d_model"}},
    {"model.bias", {"bias"}},
    {"model.dropout", {"dropout", "attention_dropout"}},
    {"model.vocab", {"vocab_size"}},
    {"checkpoint_every", {"save_steps", "save_every", "save_interval"}},
    {"keep_checkpoints", {"save_total_limit"}},
    {"beta1", {"adam_beta1"}},
    {"beta2", {"adam_beta2"}},
    {"eps", {"adam_epsilon"}},
    {"optimizer", {"optim"}},
    {"patience", {"early_stopping_patience"}},
    {"recompute", {"gradient_checkpointing"}},
    {"model.ff", {"intermediate_size", "n_inner"}},
    {"context", {"seq_len", "seq_length", "sequence_length", "max_seq_length"}},
    {"model.family", {"model_type"}},
    {"model.tie", {"tie_embeddings", "tie_word_embeddings"}},
    {"validation", {"validation_file"}},
    {"model.classes", {"num_labels"}},
};

// The key of ours that other programs call `word`, or an empty text.
std::string_view own_name(std::string_view word) {
  for (const auto& [here, there] : kOtherNames)
    if (std::find(there.begin(), there.end(), word) != there.end()) return here;
  return {};
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

// The end of an error about an unknown key: why it was removed, its name here (other_names), or the known key or section that is near. One
// in another section is as near as one wrong letter. Of two that are equally near neither is named: "; --help-config prints every key".
std::string suggestion_for(const std::string& key, const std::vector<Field>& fields) {
  const std::string start = key.substr(0, 100);
  if (key == kRemovedKey) return ", which was removed: the processes that mpirun starts share a step";
  if (const std::string_view here = own_name(last_part(start)); !here.empty()) return format_message(", here it is '{}'", {here});
  size_t least = SIZE_MAX;
  std::string best;
  bool is_best = false;  // no other is as near
  const auto weigh = [&](size_t distance, std::string_view known) {
    if (distance > least || (distance == least && known == best)) return;
    is_best = distance < least;
    if (is_best) best = known;
    least = distance;
  };
  const auto consider = [&](const std::string& known) {
    weigh(std::min(edit_distance(start, known), edit_distance(last_part(start), last_part(known)) + 1), known);
  };
  for (const auto& [here, there] : kOtherNames)
    for (const std::string_view name : there) weigh(edit_distance(last_part(start), name) + 1, here);
  for (const Field& field : fields) {
    consider(field.key);
    if (const size_t dot = field.key.find('.'); dot != field.key.npos) consider(field.key.substr(0, dot));
  }
  const bool moved = last_part(start) == last_part(best);
  if (is_best && (moved || is_near(least, last_part(start).size()))) return format_message(", the nearest known key is '{}'", {best});
  return "; --help-config prints every key";
}

// ---- Keys
bool is_known(const std::vector<Field>& fields, const std::string& key) {
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.key == key; });
}

// Several choices may have a key of this name; the one that is read gets the value.
void store_where_read(const std::vector<Field>& fields, const Setting& setting) {
  std::string readers;
  for (const Field& field : fields) {
    if (field.key != setting.key) continue;
    if (field.is_read) return store(setting, field);
    readers += (readers.empty() ? "" : ", ") + field.by;
  }
  if (setting.may_be_unread) return;
  fail("{}: {}: nothing reads it here, only {}", {setting.place, setting.key, readers});
}

bool is_section(const std::vector<Field>& fields, const std::string& key) {
  const auto inside = [&](const Field& field) { return field.key.starts_with(key + "."); };
  return std::any_of(fields.begin(), fields.end(), inside);
}

// Turns nodes into settings of known keys.
struct Collector {
  const std::vector<Field>& fields;
  std::string source;  // file, or "command line"
  bool has_lines;
  bool may_be_unread = false;  // keys that nothing reads are passed over
  std::string folder = {};     // as in Setting
  bool is_of_run = false;      // the config.yaml of a run
  std::vector<Setting> settings = {};
  std::set<std::string> seen = {};

  std::string place(const YamlValue& node) const { return has_lines ? source + ":" + std::to_string(node.line) : source; }
  void add(const std::string& key, const std::string& where, const YamlValue& value) {
    if (is_section(fields, key)) return add_section(key + ".", where, value);
    if (!is_known(fields, key) && (may_be_unread || (is_of_run && key == kRemovedKey))) return;
    if (!is_known(fields, key)) fail("{}: unknown key '{}'{}", {where, one_line(key), suggestion_for(key, fields)});
    const bool again = !seen.insert(key).second;
    if (again && has_lines) fail("{}: {} is given twice", {where, key});
    const auto is_list = [&](const Field& f) { return f.key == key && std::holds_alternative<std::vector<std::string>*>(f.value); };
    if (again && std::any_of(fields.begin(), fields.end(), is_list))
      fail("{0}: {1} is given twice; {1}='[A, B]' is a list of both", {where, key});
    settings.push_back({key, where, value, may_be_unread, folder});
  }
  void add_section(const std::string& prefix, const std::string& where, const YamlValue& node) {
    if (node.kind == Kind::nothing) return;
    if (node.kind != Kind::keys) {
      const std::string name = prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1) + ": ";
      fail("{}: {}expected keys and values, got {}", {where, name, shown(node)});
    }
    for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const YamlValue& key = node.items[i];
      if (key.kind != Kind::text) fail("{}: expected a key, got {}", {place(key), shown(key)});
      add(prefix + key.text, place(key), node.items[i + 1]);
    }
  }
};

// The config.yaml of a run folder that is older than the version in the first line of such files. It lists every key that there was.
bool lists_every_key(const std::string& text) {
  const std::vector<std::string_view> comments = comments_on_top(text);
  return !comments.empty() && comments[0].starts_with("# commit ") && std::none_of(comments.begin(), comments.end(), has_version);
}

// The config.yaml of a run. Files beside it belong to the run, and it was not trained on them.
bool is_written_by_training(const std::string& text) {
  const std::vector<std::string_view> comments = comments_on_top(text);
  return !comments.empty() && tells_build(comments[0]);
}

void read_file(const std::string& path, Collector& into) {
  const bool is_yaml = path.ends_with(".yaml") || path.ends_with(".yml");
  try {
    const std::string text = read_text(path, kMaxYaml);
    into.may_be_unread = lists_every_key(text);
    into.is_of_run = is_written_by_training(text);
    if (!into.is_of_run) into.folder = fs::path(path).parent_path().string();
    const YamlValue root = parse_yaml(text, path, true);
    if (!is_yaml && root.kind == Kind::nothing) fail("{}: there is no key in it", {path});
    into.add_section("", into.place(root), root);
  } catch (const Error& error) {
    if (is_yaml || !is_file(path)) throw;
    fail("{}; {} is read as a run file, data={} trains on it as a text", {error.what(), path, path});
  }
}

// A value on the command line, which has no comments: a plain text stays as it was typed. Error: something follows a value in quotes or
// brackets.
YamlValue value_of_word(const std::string& word, const std::string& source) {
  YamlValue value = parse_yaml(word, source, false);
  const size_t comment = word.rfind('#');
  const bool is_comment = value.kind == Kind::nothing && comment != word.npos;
  if (value.is_plain || is_comment) return {.kind = Kind::text, .text = word, .is_plain = true};
  char closing = word[0];                              // a quote
  if (closing == '[' || closing == '{') closing += 2;  // in ASCII
  if (comment != word.npos && word.back() != closing)
    fail("{}: '{}' follows the value; a text with # in it needs quotes around all of it", {source, one_line(word.substr(comment))});
  return value;
}

void read_override(const std::string& assignment, Collector& into) {
  if (assignment.starts_with('~')) {
    const std::string key = assignment.substr(1, assignment.find('=') - 1);
    if (!is_known(into.fields, key) && !is_section(into.fields, key))
      fail("{}: unknown key '{}'{}", {into.source, one_line(key), suggestion_for(key, into.fields)});
    if (key.size() + 1 < assignment.size())
      fail("{}: ~{} takes the key back and has no value, expected ~{}, got '{}'", {into.source, key, key, one_line(assignment)});
    into.settings.push_back({.key = key, .place = into.source, .value = {}, .takes_back = true});
    return;
  }
  const size_t equals = assignment.find('=');
  if (equals == assignment.npos || equals == 0) fail("{}: expected key=value, got '{}'", {into.source, one_line(assignment)});
  const YamlValue value = value_of_word(assignment.substr(equals + 1), into.source + ": " + one_line(assignment));
  into.add(assignment.substr(0, equals), into.source, value);
}

// Leaves out what is taken back later, a key or a whole section, and the word that does so.
std::vector<Setting> without_taken_back(const std::vector<Setting>& settings) {
  std::vector<Setting> kept;
  for (const Setting& setting : settings) {
    if (setting.takes_back)
      std::erase_if(kept, [&](const Setting& before) { return before.key == setting.key || before.key.starts_with(setting.key + "."); });
    else kept.push_back(setting);
  }
  return kept;
}

void store_deciding(const std::vector<Setting>& settings, const std::vector<Field>& fields) {
  for (const Setting& setting : settings)
    for (const Field& field : fields)
      if (field.key == setting.key && field.is_deciding && !(field.follows_choices && setting.value.kind == Kind::nothing))
        store(setting, field);
}

// The defaults of the keys that follow the choices.
TextsByKey defaults_of(const std::vector<Field>& fields) {
  TextsByKey defaults;
  for (const Field& field : fields)
    if (field.follows_choices) defaults[field.key] = value_text(field);
  return defaults;
}

// The keys whose last setting is a value.
std::set<std::string> keys_with_values(const std::vector<Setting>& settings) {
  std::set<std::string> keys;
  for (const Setting& setting : settings) {
    if (setting.value.kind == Kind::nothing) keys.erase(setting.key);
    else keys.insert(setting.key);
  }
  return keys;
}

// "model." of model.layers
std::string section_of(const std::string& key) { return key.substr(0, key.rfind('.') + 1); }

std::string comment_of(const Field& field) {
  std::string text = (field.follows_choices ? value_text(field) + "; " : "") + field.description;
  if (const auto* choice = std::get_if<ChoiceMember>(&field.value))
    for (size_t i = 0; i < choice->names.size(); ++i) text += (i ? " | " : ": ") + std::string(choice->names[i]);
  return field.by.empty() ? text : text + "; only " + field.by;
}

// The keys that are read, line by line, with their sections. With all_keys the others follow as comments. value(field) is the text
// after the key.
template <class Value> std::string lines(const std::vector<Field>& fields, bool all_keys, const Value& value) {
  std::string all, section;
  for (const Field& field : fields) {
    if (!field.is_read && !all_keys) continue;
    if (section_of(field.key) != section) {
      section = section_of(field.key);
      if (!section.empty()) all += section.substr(0, section.size() - 1) + ":\n";
    }
    const std::string start = (section.empty() ? "" : "  ") + std::string(field.is_read ? "" : "# ") + field.key.substr(section.size());
    all += value(field, start + ": ") + "\n";
  }
  return all;
}

}  // namespace

const std::vector<OtherNames>& other_names() { return kOtherNames; }

std::vector<std::string> store(const std::vector<Field>& fields, const std::string& path, const std::vector<std::string>& overrides,
    const std::function<std::vector<std::string>()>& inherited, const std::function<void()>& give_defaults,
    const std::function<std::vector<Field>()>& fields_now) {
  Collector file{fields, path, true}, command_line{fields, "command line", false};
  if (!path.empty()) read_file(path, file);
  for (const std::string& assignment : overrides) read_override(assignment, command_line);

  std::vector<Setting> given = std::move(file.settings);
  given.insert(given.end(), command_line.settings.begin(), command_line.settings.end());
  given = without_taken_back(given);
  store_deciding(given, fields);
  Collector lowest{fields, "inherited", false, true};
  for (const std::string& assignment : inherited()) read_override(assignment, lowest);
  std::vector<Setting> all = std::move(lowest.settings);
  all.insert(all.end(), given.begin(), given.end());
  store_deciding(all, fields);

  give_defaults();
  const TextsByKey defaults = defaults_of(fields_now());
  store_deciding(all, fields);
  const std::vector<Field> read = fields_now();
  for (Setting& setting : all) {
    const auto found = defaults.find(setting.key);
    if (found != defaults.end() && setting.value.kind == Kind::nothing) setting.value = {Kind::text, found->second};
    store_where_read(read, setting);
  }
  std::vector<std::string> following;
  const std::set<std::string> said = keys_with_values(given);
  for (const Field& field : read)
    if (field.is_read && field.follows_choices && value_text(field) == defaults.at(field.key) && !said.count(field.key))
      following.push_back(field.key);
  return following;
}

std::string to_yaml(const std::vector<Field>& fields, const TextsByKey& following) {
  return lines(fields, false, [&](const Field& field, const std::string& start) {
    const auto found = following.find(field.key);
    return start + (found == following.end() ? value_yaml(field) : found->second + "  # " + value_text(field));
  });
}

std::string describe(const std::vector<Field>& fields) {
  constexpr size_t kCommentColumn = 34;
  return lines(fields, true, [&](const Field& field, const std::string& start) {
    return fmt::format("{:<{}} # {}", start + (field.follows_choices ? "null" : value_text(field)), kCommentColumn, comment_of(field));
  });
}

}  // namespace ricci::apps
