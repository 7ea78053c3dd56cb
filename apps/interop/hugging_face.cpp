#include <algorithm>
#include <cstring>
#include <memory>

#include "apps/interop/interop.h"
#include "apps/interop/their_models.h"
#include "apps/interop/their_tokenizer.h"
#include "apps/run/run.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/json.h"

namespace ricci::apps {
namespace {

constexpr const char *kWeights = "model.safetensors", *kHead = "lm_head.weight";

// The weights of the folder in the model. The first row is the embedding table. All names have the prefix of the rows, or none has. A tied
// output map may be in the files, too; then it must be the embedding table.
void load(Model& model, Architecture rows, const WeightFiles& files) {
  if (!files.contains(rows.prefix + rows.rows[0].theirs)) rows.prefix.clear();
  const std::string table = rows.prefix + rows.rows[0].theirs;
  std::vector<const char*> not_read(rows.not_read.begin(), rows.not_read.end());
  if (model.config().output.tie && files.contains(kHead)) {
    if (files.contains(table)) {
      const Tensor head = files.file_of(kHead).load_f32(kHead), tok = files.file_of(table).load_f32(table);
      if (!(head.shape() == tok.shape()) || std::memcmp(head.raw(), tok.raw(), static_cast<size_t>(tok.bytes())) != 0)
        fail("{}: {} is not {}, though tie_word_embeddings is true", {files.path, kHead, table});
    }
    not_read.push_back(kHead);
  }
  rows.not_read = not_read;
  load_theirs(model, rows, files);
}

// ---- Writing: an export that was interrupted has written no config.json, and the same export continues with the files that it left
bool holds(const SafetensorsFile& file, const NamedTensors& tensors) {
  const auto is_there = [&](const auto& named) {
    const auto& [name, value] = named;
    if (!file.contains(name) || file.dtype(name) != value.dtype() || !(file.shape(name) == value.shape())) return false;
    return std::memcmp(file.load(name).raw(), value.raw(), static_cast<size_t>(value.bytes())) == 0;
  };
  return file.names().size() == tensors.size() && std::all_of(tensors.begin(), tensors.end(), is_there);
}

// As generate of transformers reads it: every id of the list ends a text. Empty without such ids.
std::string generation_config(const Marks& marks) {
  Json json;
  add_marks(json, marks);
  return marks.ends.empty() ? "" : to_text(json, 2) + "\n";
}

// Writes those files that are not there yet. Error: the folder holds another file that would be read with them, or in their place.
void write_folder(const std::string& folder, const std::vector<std::pair<const char*, std::string>>& texts, const NamedTensors& tensors) {
  const auto path = [&](const char* name) { return folder + "/" + name; };
  const auto refuse = [&](const char* name) { fail("{}: holds a model already ({})", {folder, name}); };
  for (const char* name : {"config.json", "model.safetensors.index.json", "vocab.json", "merges.txt"})
    if (is_there(path(name))) refuse(name);
  for (const auto& [name, text] : texts)
    if (const auto found = find_text(path(name)); found && *found != text) refuse(name);
  const std::optional<SafetensorsFile> weights = SafetensorsFile::find(path(kWeights));
  if (weights && !holds(*weights, tensors)) refuse(kWeights);
  make_folders(folder);
  if (!weights) save_safetensors(path(kWeights), tensors, {{"format", "pt"}});
  for (const auto& [name, text] : texts)
    if (!text.empty()) write_atomically(path(name), text);
}

// A line with the reason that a tokenizer is not exported.
std::string tokenizer_note(const Tokenizer& tokenizer) {
  const std::string lacking = tokenizer.eos() == Eos::line ? "that ends lines with a piece" : "of the kind " + tokenizer.name();
  return "\ntransformers has no tokenizer " + lacking;
}

}  // namespace

std::string import_hugging_face(const std::string& folder, const std::string& run, const ImportOptions& options) {
  if (is_there(folder + "/config.yaml")) fail("{}: is a run already; import reads folders of Hugging Face", {folder});
  const std::string path = folder + "/config.json";
  const Json json = read_json(path);
  const ModelConfig config = config_of_theirs(json, path, options.dropout);
  const WeightFiles files = open_weights(folder);
  const std::shared_ptr<const Tokenizer> tokenizer = options.without_tokenizer ? nullptr : read_their_tokenizer(folder, json);
  if (tokenizer && tokenizer->vocab_size() > config.vocab)
    fail("{}: its tokenizer has {} tokens, but its config.json has vocab_size: {}; --without-tokenizer leaves it out",
        {folder, tokenizer->vocab_size(), config.vocab});
  const TheirChat chat = options.without_tokenizer ? TheirChat() : read_their_chat(folder, tokenizer);
  Model model(config);
  load(model, their_architecture(config), files);
  return write_imported_run(run, model, tokenizer.get(), folder, chat);
}

std::string export_hugging_face(const std::string& path, const std::string& which, const std::string& folder) {
  const RunFolder run = RunFolder::open(path, RunFolder::Vocabulary::optional);
  Model model = run.load_model(Device::cpu, which);
  const ModelConfig& c = model.config();
  const Marks marks = marks_of(run);
  const std::string config = their_config(c, marks), tokenizer = their_tokenizer(run.tokenizer().get());
  const bool has_tokenizer = !tokenizer.empty();
  const ImportedTemplate chat = has_tokenizer ? template_of(run) : ImportedTemplate();
  write_folder(folder,
      {{"tokenizer.json", tokenizer}, {kTemplateFile, chat.file},
          {"tokenizer_config.json", has_tokenizer ? tokenizer_config(*run.tokenizer(), marks, c.ctx, chat.member) : ""},
          {"generation_config.json", generation_config(marks)}, {"config.json", config}},
      their_weights(model));
  const Tokenizer* const ours = run.tokenizer().get();
  return format_message("{}: {} parameters from {}\n{}, {}, vocabulary {}, context {}{}",
      {folder, with_commas(model.parameter_count()), path, their_architecture(c).name,
          has_tokenizer ? ours->name() + " tokenizer" : "no tokenizer", c.vocab, c.ctx,
          ours && !has_tokenizer ? tokenizer_note(*ours) : ""});
}

}  // namespace ricci::apps
