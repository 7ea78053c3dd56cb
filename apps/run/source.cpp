#include <algorithm>

#include "apps/run/corpus.h"
#include "core/error.h"
#include "data/shards/document_reader.h"

namespace ricci::apps {

std::string found_or_given(const std::string& path) {
  return look_for_data(path).value_or(path).string();  // not found: a built-in text, or a text whose opening reports the error
}

bool are_shards(const std::vector<std::string>& paths) {
  const auto is = [](const std::string& path) { return about_data([&] { return names_shards(found_or_given(path)); }); };
  const auto shards = std::find_if(paths.begin(), paths.end(), is), text = std::find_if_not(paths.begin(), paths.end(), is);
  if (shards != paths.end() && text != paths.end())
    fail("data: {} holds shards and {} is a text; ricci-prepare makes shards of texts", {*shards, *text});
  return shards != paths.end();
}

TextSource open_text(const std::vector<std::string>& paths) {
  const BuiltInText built_in[] = {{"embedded", embedded_corpus()}};
  const bool list = paths.size() != 1 || paths[0] == built_in[0].name;  // one path may be several, with commas between them
  return list ? TextSource::of_paths(paths, built_in) : TextSource(paths[0]);
}

StoreSource source_of(const TrainConfig& config, const std::vector<std::string>& paths, bool is_cut) {
  StoreSource source{.files = open_text(paths).read_as(config.encoding)};
  if (config.format != DocumentFormat::text)
    source.documents = {.format = config.format,
        .text_field = config.text_field,
        .label_field = config.label_field,
        .classes = is_classifier(config) ? config.model.settings<Classifier>().classes : 0,
        .labels = is_classifier(config) ? config.labels : std::vector<std::string>()};
  if (is_cut) source.train_fraction = config.train_fraction;
  return source;
}

std::vector<std::string> labels_of(const TrainConfig& config) {
  if (!is_classifier(config) || config.format == DocumentFormat::text || !config.labels.empty()) return config.labels;
  const StoreSource source = source_of(config, config.data, false);
  std::vector<std::string> labels = word_labels(source.files, source.documents);
  if (const int64_t classes = source.documents.classes; !labels.empty() && std::ssize(labels) != classes)
    fail("model.classes: {}, but {} has labels of {} kinds, from '{}' to '{}'",
        {classes, source.files.name(), labels.size(), one_line(labels.front()), one_line(labels.back())});
  return labels;
}

}  // namespace ricci::apps
