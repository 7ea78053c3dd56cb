// yaml-cpp reports events, and the tree is built here: its own reading of several documents does not end at a comma
// where a document should start, and its nodes take ten times the memory.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "apps/run/config.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

constexpr int64_t kMaxValues = 100'000;

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& text, const std::string& source, bool has_lines) : text_(text), source_(source), has_lines_(has_lines) {}

  YamlValue build() {
    // yaml-cpp takes a quote for closed by the last line break of a text; a comment after it makes it notice.
    std::istringstream input(has_lines_ ? text_ + "\n#" : text_);
    try {
      YAML::Parser parser(input);
      while (parser.HandleNextDocument(*this)) {
      }
      return std::move(root_);
    } catch (const YAML::Exception& error) {
      reject(error.mark, "not YAML: " + error.msg);
    }
  }

  // ---- What the parser meets, in the order of the text
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    const char next = mark.pos >= 0 && static_cast<size_t>(mark.pos) < text_.size() ? text_[static_cast<size_t>(mark.pos)] : ' ';
    if (next == ',' || next == ']' || next == '}')
      reject(mark, std::string("not YAML: unexpected '") + next + "'; text that starts with it needs quotes");
    fail("{}: expected one YAML document, got more", {source_});
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(mark, {.line = mark.line + 1}, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    add(mark, {.kind = YamlValue::Kind::text, .text = value, .line = mark.line + 1, .is_plain = tag == "?"}, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) reject(mark, "an alias inside of its own anchor");
    count(mark, found->second);
    add(mark, found->second, 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, YamlValue::Kind::list, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, YamlValue::Kind::keys, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlValue value;
    YAML::Mark mark;
    YAML::anchor_t anchor;
  };

  [[noreturn]] void reject(const YAML::Mark& mark, const std::string& fault) const {
    const auto last = std::count(text_.begin(), text_.end(), '\n');
    const std::string line = has_lines_ && !mark.is_null() ? ":" + std::to_string(std::min<int64_t>(mark.line, last) + 1) : "";
    fail("{}{}: {}", {source_, line, fault});
  }

  void count(const YAML::Mark& mark, const YamlValue& value) {
    if (++values_ > kMaxValues) reject(mark, format_message("more than {} values", {kMaxValues}));
    for (const YamlValue& item : value.items) count(mark, item);
  }

  void add(const YAML::Mark& mark, YamlValue value, YAML::anchor_t anchor) {
    if (++values_ > kMaxValues) reject(mark, format_message("more than {} values", {kMaxValues}));
    if (anchor) {
      count(mark, value);
      anchors_[anchor] = value;
    }
    if (open_.empty()) root_ = std::move(value);
    else open_.back().value.items.push_back(std::move(value));
  }

  void open(const YAML::Mark& mark, YamlValue::Kind kind, YAML::anchor_t anchor) {
    if (open_.size() == kDeepestYaml) reject(mark, format_message("lists and mappings are nested more than {} deep", {kDeepestYaml}));
    open_.push_back({{.kind = kind, .line = mark.line + 1}, mark, anchor});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(done.mark, std::move(done.value), done.anchor);
  }

  const std::string &text_, &source_;
  bool has_lines_;
  int documents_ = 0;
  int64_t values_ = 0;  // values of an anchor count once for each of its aliases
  YamlValue root_;
  std::vector<Open> open_;  // the outermost first
  std::map<YAML::anchor_t, YamlValue> anchors_;
};

}  // namespace

YamlValue parse_yaml(const std::string& text, const std::string& source, bool has_lines) {
  if (static_cast<int64_t>(text.size()) > kMaxYaml) fail("{}: {} bytes, at most {} are read", {source, text.size(), kMaxYaml});
  return TreeBuilder(text, source, has_lines).build();
}

}  // namespace ricci::apps
