// Run files and overrides: values read, printed and derived, every fault with its position, and suggestions for unknown keys.
#include "apps/run/config.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "apps/run/train_config.h"
#include "apps/terminal/cli.h"
#include "core/error.h"
#include "core/files/file.h"
#include "tests/data/files.h"
#include "tests/sanitized.h"
#include "tests/skip.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

TrainConfig read(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const ScratchFolder folder;
  return load_config<TrainConfig>(folder.write("run.yaml", yaml), overrides);
}

// The error of a run file, as if it were called run.yaml.
std::string complaint(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const ScratchFolder folder;
  const std::string path = folder.write("run.yaml", yaml);
  std::string error = error_of([&] { load_config<TrainConfig>(path, overrides); });
  CHECK(error.find('\n') == error.npos);
  if (error.starts_with(path)) error.replace(0, path.size(), "run.yaml");
  return error;
}

TrainConfig of_keys(const std::vector<std::string>& overrides) { return load_config<TrainConfig>("", overrides); }
std::string complaint_of_keys(const std::vector<std::string>& overrides) {
  return error_of([&] { of_keys(overrides); });
}
std::string override_complaint(const std::string& assignment) { return complaint_of_keys({assignment}); }

// Every key that is read, with derived values. Two configs are equal if these are.
std::map<std::string, std::string> keys_of(TrainConfig config) {
  config = resolved(config);
  std::map<std::string, std::string> values;
  for (const Field& field : fields_of(config))
    if (field.is_read) values[field.key] = value_text(field);
  return values;
}

// The key that an error about an unknown key suggests, or empty.
std::string suggested(const std::string& message) {
  const size_t end = message.rfind('\''), begin = message.rfind('\'', end - 1) + 1;
  return contains(message, "; --help-config") ? "" : message.substr(begin, end - begin);
}

}  // namespace

TEST_CASE("config: defaults, with what follows from them") {
  const TrainConfig config = load_config<TrainConfig>("");
  CHECK(config.sequence_length() == 64);
  CHECK(config.model.block.feed_forward(config.model.d) == 512);
  CHECK(config.model.vocab == 0);
  CHECK(config.given.empty());
  CHECK(to_yaml(config).empty());
  for (const char* empty : {"", "\n", "# a comment\n", "model:\n", "{}", "---\n"}) CHECK(keys_of(read(empty)) == keys_of(config));
}

TEST_CASE("config: values of every type") {
  const TrainConfig config = read(R"(
name: trial-7
lr: 3e-4
clip: 0
steps: 12
seed: 18446744073709551615
data: [a.txt, "b, c.txt"]
validation: v.txt
model:
  layers: 6
  d: 96
  bias: False
  tie: true
  window: 5
  dropout: .1
context: 32
sample: {prompt: "a\tb\n", tokens: 7, temperature: 0.5}
lr_of:
  tok: 1e-1
  blocks.*.mixer: 0
  '*.bias': 2
decay_of: null
)");
  CHECK(config.optimizer.lr_of == NamedNumbers{{"tok", 0.1}, {"blocks.*.mixer", 0}, {"*.bias", 2}});
  CHECK(config.optimizer.decay_of.empty());
  CHECK(config.given.contains("lr_of"));
  CHECK(!config.given.contains("decay_of"));
  CHECK(of_keys({"lr_of={tok: 0.1, \"*.bias\": 2}"}).optimizer.lr_of == NamedNumbers{{"tok", 0.1}, {"*.bias", 2}});
  CHECK(of_keys({"lr_of={tok: 1}", "lr_of={}"}).optimizer.lr_of.empty());
  CHECK(config.name == "trial-7");
  CHECK(config.schedule.lr == 3e-4);
  CHECK(config.clip == 0);
  CHECK(config.steps == 12);
  CHECK(config.seed == UINT64_MAX);
  CHECK(config.data == std::vector<std::string>{"a.txt", "b, c.txt"});
  CHECK(config.validation == std::vector<std::string>{"v.txt"});
  CHECK(config.model.layers == 6);
  CHECK(config.model.d == 96);
  CHECK(config.model.block.feed_forward(96) == 384);
  CHECK_FALSE(config.model.block.bias);
  CHECK(config.model.settings<Sdp>().window == 5);
  CHECK(config.model.block.dropout == 0.1);
  CHECK(config.context == 32);
  CHECK(config.sample.prompt == "a\tb\n");
  CHECK(config.sample.tokens == 7);
  CHECK(config.sample.sampling.temperature == 0.5);
}

TEST_CASE("config: overrides win, the last one counts, sections may be given whole") {
  const std::string yaml = "lr: 1e-2\nmodel:\n  layers: 2\n  d: 32\n";
  const TrainConfig config =
      read(yaml, {"model.layers=3", "lr=2e-3", "model.layers=6", "model={heads: 2, ctx: 8}", "data=[x, y]", "name=a=b"});
  CHECK(config.model.layers == 6);
  CHECK(config.model.d == 32);
  CHECK(config.model.settings<Sdp>().heads == 2);
  CHECK(config.sequence_length() == 8);
  CHECK(config.schedule.lr == 2e-3);
  CHECK(config.data == std::vector<std::string>{"x", "y"});
  CHECK(config.name == "a=b");
  CHECK(read("model.layers: 5").model.layers == 5);
  CHECK_FALSE(read("model: {window: null}").model.settings<Sdp>().window.has_value());
  for (const char* none : {"model.window=null", "model.window="})
    CHECK_FALSE(read("model: {window: 3}", {none}).model.settings<Sdp>().window.has_value());
  for (const char* none : {"validation: null", "validation: []"}) CHECK(read(none).validation.empty());
}

TEST_CASE("config: a preset gives its keys wherever it stands; what is said explicitly wins") {
  const TrainConfig file = read("model:\n  tie: true\n  preset: msa\n  norm: pre\n");
  CHECK(file.model.output.tie);
  CHECK(file.model.block.norm == Norm::pre);
  CHECK(file.model.block.activation == Activation::relu);
  CHECK(file.model.output.head_bias);
  const TrainConfig line = read("model:\n  preset: gpt\n  activation: gelu_tanh\n", {"model.preset=msa"});
  CHECK(line.model.block.norm == Norm::post);
  CHECK(line.model.block.activation == Activation::gelu_tanh);
}

TEST_CASE("config: unknown keys name file, line and the nearest known key") {
  CHECK(complaint("steps: 3\n\nmodel:\n  d: 8\n  windwo: 3\n") ==
        "run.yaml:5: unknown key 'model.windwo', the nearest known key is 'model.window'");
  CHECK(complaint("layers: 3\n") == "run.yaml:1: unknown key 'layers', the nearest known key is 'model.layers'");
  CHECK(complaint("model: {lr: 3}\n") == "run.yaml:1: unknown key 'model.lr', the nearest known key is 'lr'");
  CHECK(complaint("stpes: 3\n") == "run.yaml:1: unknown key 'stpes', the nearest known key is 'steps'");
  CHECK(complaint("modle:\n  d: 3\n") == "run.yaml:1: unknown key 'modle', the nearest known key is 'model'");
  CHECK(override_complaint("model.layer=6") == "command line: unknown key 'model.layer', the nearest known key is 'model.layers'");
  CHECK(complaint("frobnicate: 3\n") == "run.yaml:1: unknown key 'frobnicate'; --help-config prints every key");
  CHECK(override_complaint("Warmup=6") == "command line: unknown key 'Warmup', the nearest known key is 'warmup'");
}

TEST_CASE("config: integers with an exponent") {
  CHECK(read("steps: 1e3").steps == 1000);
  CHECK(read("steps: 2.5E3").steps == 2500);
  CHECK(read("seed: 1e1").seed == 10);
  CHECK(complaint("steps: 1e-3\n") == "run.yaml:1: steps: expected integer, got '1e-3'");
  CHECK(complaint("steps: 1e300\n") == "run.yaml:1: steps: expected integer, got '1e300'");
  CHECK(complaint("seed: -1e3\n") == "run.yaml:1: seed: expected integer of 0 or more, got '-1e3'");
}

TEST_CASE("config: a key that nothing reads is an error that says who does") {
  CHECK(complaint("momentum: 0.5\n") == "run.yaml:1: momentum: is read only with optimizer: sgd, optimizer: muon");
  CHECK(complaint("optimizer: sgd\nbeta2: 0.5\n") ==
        "run.yaml:2: beta2: is read only with optimizer: adamw, optimizer: adam, optimizer: muon");
  CHECK(override_complaint("decay_fraction=0.1") == "command line: decay_fraction: is read only with schedule: wsd");
  CHECK(
      complaint("min_lr: 0\nschedule: constant\n") == "run.yaml:1: min_lr: is read only with schedule: cosine, linear, inverse_sqrt, wsd");
  CHECK(complaint("validation: a.txt\ntrain_fraction: 0.5\n") == "run.yaml:2: train_fraction: is read only with validation: []");
  // The deciding key can come later, and from a different file.
  CHECK(read("momentum: 0.5\n", {"optimizer=sgd"}).optimizer.settings<Sgd>().momentum == 0.5);
  CHECK(read("decay_fraction: 0.5\nschedule: wsd\n").schedule.decay_fraction == 0.5);
  CHECK_FALSE(keys_of(read("")).contains("momentum"));
}

TEST_CASE("config: wrong types name file, line, key and value") {
  CHECK(complaint("model:\n  heads: 2\n  d: abc\n") == "run.yaml:3: model.d: expected integer, got 'abc'");
  CHECK(complaint("steps: 1.5\n") == "run.yaml:1: steps: expected integer, got '1.5'");
  CHECK(complaint("steps: 99999999999999999999\n") == "run.yaml:1: steps: expected integer, got '99999999999999999999'");
  CHECK(complaint("steps:\n") == "run.yaml:1: steps: expected integer, got nothing");
  CHECK(complaint("steps: [1]\n") == "run.yaml:1: steps: expected integer, got a list");
  CHECK(complaint("seed: -1\n") == "run.yaml:1: seed: expected integer of 0 or more, got '-1'");
  CHECK(complaint("lr: fast\n") == "run.yaml:1: lr: expected number, got 'fast'");
  CHECK(complaint("lr: .nan\n") == "run.yaml:1: lr: expected number, got '.nan'");
  CHECK(complaint("model: {tie: yes}\n") == "run.yaml:1: model.tie: expected true or false, got 'yes'");
  CHECK(complaint("name: {a: b}\n") == "run.yaml:1: name: expected text, got keys and values");
  CHECK(complaint("data: [a, [b]]\n") == "run.yaml:1: data: expected text or list of texts, got a list");
  for (const char* value : {"0.1", "[tok, 0.1]", "{tok: fast}", "{tok: }", "{[tok]: 1}", "{tok: {a: 1}}"}) {
    const std::string message = complaint("lr_of: " + std::string(value) + "\n");
    CHECK(message.starts_with("run.yaml:1: lr_of: expected numbers by name, as in {tok: 0.1}, got "));
  }
  CHECK(complaint("model: {window: x}\n") == "run.yaml:1: model.window: expected integer or null, got 'x'");
  CHECK(complaint("model: {norm: mid}\n") == "run.yaml:1: model.norm: expected one of pre, post, got 'mid'");
  CHECK(complaint("model: 3\n") == "run.yaml:1: model: expected keys and values, got '3'");
  CHECK(complaint("- a\n") == "run.yaml:1: expected keys and values, got a list");
  CHECK(complaint("? [a]\n: b\n") == "run.yaml:1: expected a key, got a list");
  CHECK(override_complaint("model.d=abc") == "command line: model.d: expected integer, got 'abc'");
  CHECK(override_complaint("model.d") == "command line: expected key=value, got 'model.d'");
  CHECK(override_complaint("~model.dd") == "command line: unknown key 'model.dd', the nearest known key is 'model.d'");
  CHECK(override_complaint("~lr=3") == "command line: ~lr removes the key and allows no value; expected ~lr, got '~lr=3'");
  CHECK(override_complaint("~") == "command line: unknown key ''; --help-config prints every key");
  CHECK(override_complaint("=3") == "command line: expected key=value, got '=3'");
  CHECK(complaint("steps: \"a\\nb" + std::string(100, 'c') + "\"\n") ==
        "run.yaml:1: steps: expected integer, got 'a b" + std::string(54, 'c') + "...'");
}

TEST_CASE("config: ~KEY removes a key that the file sets") {
  const std::string yaml = "lr: 0.5\nsample.prompt: x\nmodel: {mixer: sdp, heads: 2, d: 32}\n";
  CHECK(keys_of(read(yaml, {"~lr", "~sample.prompt"})) == keys_of(read("model: {mixer: sdp, heads: 2, d: 32}\n")));
  CHECK(keys_of(read(yaml, {"lr=3", "~lr"})) == keys_of(read(yaml, {"~lr"})));
  CHECK(keys_of(read(yaml, {"~model"})) == keys_of(read("lr: 0.5\nsample.prompt: x\n")));
  CHECK(keys_of(read(yaml, {"~lr", "lr=3"})) == keys_of(read(yaml, {"lr=3"})));
  CHECK(keys_of(read(yaml, {"~steps"})) == keys_of(read(yaml)));  // nothing to drop
  CHECK(complaint(yaml, {"model.mixer=identity"}).find("model.heads: is read only with") != std::string::npos);
  CHECK(keys_of(read(yaml, {"model.mixer=identity", "~model.heads"})) ==
        keys_of(read("lr: 0.5\nsample.prompt: x\nmodel: {mixer: identity, d: 32}\n")));
  CHECK(keys_of(read(yaml, {"~model.mixer", "~model.heads"})) == keys_of(read("lr: 0.5\nsample.prompt: x\nmodel: {d: 32}\n")));
}

TEST_CASE("config: what is not YAML, and keys given twice") {
  CHECK(complaint("steps: 3\nlr: [1\n") == "run.yaml:3: not YAML: end of sequence flow not found");
  CHECK(complaint("a: b: c\n") == "run.yaml:1: not YAML: illegal map value");
  CHECK(complaint("steps: 3\nname: \"a\n") == "run.yaml:3: not YAML: illegal EOF in scalar");
  CHECK(complaint("sample:\n  prompt: 'a\nsteps: 3\n") == "run.yaml:4: not YAML: illegal EOF in scalar");
  CHECK(override_complaint("data=[a").starts_with("command line: data=[a: not YAML: "));
  CHECK(complaint("a: 1\n---\nb: 2\n") == "run.yaml: expected one YAML document, got more");
  CHECK(complaint("lr: 1\nsteps: 3\nlr: 2\n") == "run.yaml:3: lr is given twice");
  CHECK(complaint("model: {d: 8}\nmodel.d: 16\n") == "run.yaml:2: model.d is given twice");
  // The last value of a number wins; two lists of texts could be meant as one.
  CHECK(complaint_of_keys({"data=a", "lr=1", "data=b"}) == "command line: data is given twice; data='[A, B]' gives both");
  CHECK(read("data: [a, b]\n", {"data=c"}).data == std::vector<std::string>{"c"});
  CHECK(of_keys({"model.levels=3", "model.mixer=dispatcher", "model.levels=4"}).model.settings<Dispatcher>().levels == 4);
  CHECK(error_of([] { load_config<TrainConfig>("/no/such.yaml"); }) == "cannot read /no/such.yaml: No such file or directory");
}

TEST_CASE("config: values that cannot be") {
  CHECK(complaint("model: {d: 64, heads: 3}\n") == "model.heads: 3 does not divide d = 64");
  CHECK(complaint("lr: 0\n") == "lr: 0, expected more than 0");
  CHECK(complaint("lr: 1e-5\n") == "min_lr: 0.0001 exceeds lr = 1e-05");
  CHECK(complaint("beta2: 1\n") == "beta2: 1, expected 0 or more and less than 1");
  CHECK(complaint("optimizer: sgd\nmomentum: 1\n") == "momentum: 1, expected 0 or more and less than 1");
  CHECK(complaint("optimizer: sgd\nmomentum: 0\nnesterov: true\n") == "nesterov: needs a momentum above 0");
  CHECK(complaint("optimizer: lion\n") == "run.yaml:1: optimizer: expected one of adamw, adam, sgd, muon, got 'lion'");
  CHECK(complaint("schedule: wsd\ndecay_fraction: 1.5\n") == "decay_fraction: 1.5, expected 0 to 1");
  CHECK(complaint("accumulation: 0\n") == "accumulation: 0, expected 1 or more");
  CHECK(complaint("clip: -1\n") == "clip: -1, expected 0 or more");
  CHECK(complaint("decay_of: {tok: 1, pos: -0.5}\n") == "decay_of: -0.5, expected 0 or more");
  CHECK(complaint("norms_every: -1\n") == "norms_every: -1, expected 0 or more");
  CHECK(complaint("norms_every: 2\ncuda_graph: true\ndevice: cuda\n") == "norms_every: is not supported with cuda_graph");
  CHECK(complaint("batch: 65536\naccumulation: 65536\n") ==
        "batch: 65536 times accumulation = 65536 is more than 2147483647 sequences per step");
  CHECK(complaint("batch: 0\n") == "batch: 0, expected 1 or more");
  CHECK(complaint("threads: -1\n") == "threads: -1, expected 0 or more");
  CHECK(complaint("threads: 1025\n") == "threads: 1025, expected 1024 or less");
  CHECK(complaint("log_every: 0\n") == "log_every: 0, expected 1 or more");
  CHECK(complaint("context: 65\n") == "context: 65 exceeds model.ctx = 64");
  CHECK(complaint("format: pairs\nmodel: {family: coarse, scale: 4}\n") == "format: pairs, but a coarse model writes no text");
  CHECK(complaint("format: pairs\npack: stream\n") == "pack: stream, but format pairs must not cut documents, expected none or best");
  CHECK(complaint("format: messages\npack: stream\n") ==
        "pack: stream, but format messages must not cut conversations, expected none or best");
  CHECK(complaint("order: shuffled\npack: none\n") == "pack: none requires a format with answers, not text; expected stream or best");
  CHECK(complaint("train_fraction: 1\n") == "train_fraction: 1, expected more than 0 and less than 1");
  for (const char* name : {"''", ".", "..", "a/b"})
    CHECK(contains(complaint(std::string("name: ") + name), "cannot be the name of a folder"));
  CHECK(complaint("name: 'a '\n") == "name: 'a ' cannot be the name of a folder");
  CHECK(complaint("name: \"a\\nb\"\n") == "name: contains a control character");
  CHECK(complaint("name: " + std::string(201, 'n') + "\n") == "name: '" + std::string(57, 'n') + "...' cannot be the name of a folder");
  CHECK(
      complaint("model:\n  causal: false\n") == "model.causal: false, but a language model must not attend to the tokens that it predicts");
  CHECK(complaint("schedule: step\n") == "run.yaml:1: schedule: expected one of cosine, linear, constant, inverse_sqrt, wsd, got 'step'");
  CHECK(complaint("schedule: constant\nlr: 1e-5\n") == "no error");
}

TEST_CASE("config: what is printed reads back to the same config") {
  const std::string yaml = "name: \"007: #x\"\nlr: 0.1\neps: 1.0000000000000002e-8\ndata: [a, 'b, c', 'null', '- x', '[y]', \"it's\", "
                           "'q\"\\']\n"
                           "model: {preset: msa, window: 3}\n"
                           "sample: {prompt: \"\\n\\t\\x01 \\\\ ü: \"}\n";
  const TrainConfig first = read(yaml);
  const std::string text = to_yaml(first);
  const TrainConfig second = read(text);
  CHECK(to_yaml(second) == text);
  CHECK(second.data == std::vector<std::string>{"a", "b, c", "null", "- x", "[y]", "it's", "q\"\\"});
  CHECK(second.name == "007: #x");
  CHECK(second.optimizer.settings<AdamW>().eps == 1.0000000000000002e-8);
  CHECK(second.sample.prompt == "\n\t\x01 \\ ü: ");
  for (const char* word : {"null", "true", "~", "", "0", "a b", "*x", "&x", "%", "@", "'", "-"})
    CHECK(read(to_yaml(read("data: [\"" + std::string(word) + "x\"]", {"sample.prompt=\"" + std::string(word) + "\""}))).sample.prompt ==
          word);
}

TEST_CASE("config: the description of all keys is a run file of the defaults") {
  const std::string text = describe(TrainConfig());
  CHECK(keys_of(read(text)) == keys_of(read("")));
  CHECK(text.starts_with("# ---- run\n# base: other.yaml         # a run file; its keys come first\nname: run "));
  CHECK(to_yaml(read("lr: 3e-4\nmodel: {layers: 2, bias: false}", {"data=[a, b]", "steps=7"})) ==
        "model:\n  layers: 2\n  bias: false\ndata: [a, b]\nsteps: 7\nlr: 0.0003\n");
  CHECK(contains(text, "\n  heads: 4                 # attention heads (a divisor of d); only mixer: sdp\n"));
  CHECK(contains(text,
      "\ntokenizer: char            # char, byte, word or bpe, or a file such as\n                           # tokenizer.json; word "));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 80, line);
  const std::string optimizer = describe(TrainConfig(), "optimizer");
  CHECK(optimizer.starts_with("# ---- optimizer\noptimizer: adamw "));
  CHECK(contains(text, "\n\n" + optimizer + "\n# ---- device\n"));
  CHECK(error_of([] { describe(TrainConfig(), "optimiser"); }) == "no group of keys 'optimiser', the nearest is 'optimizer'; the groups "
                                                                  "are run, model, data, batch, schedule, optimizer, device, evaluation, "
                                                                  "sample");
}

TEST_CASE("config: the config.yaml of a run of an older version is refused") {
  const std::string rest = "; this version reads runs of 0.3.0 or later";
  CHECK(complaint("# ricci 0.1.0, commit 1a2b3c4d5e\nmax_ranks: 4\n") == "run.yaml: was made by ricci 0.1.0" + rest);
  CHECK(complaint("# ricci 0.2.10, commit unknown\nsteps: 3\n") == "run.yaml: was made by ricci 0.2.10" + rest);
  for (const char* version : {"0.3.0", "0.10.0", "1.0.0", "X"})
    CHECK(read(std::string("# ricci ") + version + ", commit 1a2b3c4d5e\nsteps: 3\n").steps == 3);
  CHECK(complaint("# ricci 9.0.0, commit 1a2b3c4d5e\nmax_ranks: 4\n").starts_with("run.yaml:2: unknown key 'max_ranks'"));
  CHECK(complaint("# " + build_info() + ", device cpu\nmodel: {forgotten: 1}\n").starts_with("run.yaml:2: unknown key 'model.forgotten'"));
}

TEST_CASE("config: a mixer for each layer, and keys with a value for each mixer") {
  const TrainConfig mixed = of_keys({"model={mixer: [dispatcher, dispatcher, sdp], heads: {sdp: 8, dispatcher: 2}, window: 16}"});
  CHECK(mixed.model.mixer == ChoiceList<MixerKind>{kind_of<Dispatcher>, kind_of<Dispatcher>, kind_of<Sdp>});
  CHECK(mixed.model.settings<Sdp>().heads == 8);
  CHECK(mixed.model.settings<Dispatcher>().heads == 2);
  CHECK(mixed.model.settings<Sdp>().window == 16);
  const std::string written = "model:\n  mixer: [dispatcher, dispatcher, sdp]\n  heads: {sdp: 8, dispatcher: 2}\n  window: 16\n";
  CHECK(to_yaml(mixed) == written);
  CHECK(to_yaml(read(written)) == written);
  const TrainConfig both = of_keys({"model.mixer=[sdp, dispatcher]", "model.heads=2"});
  CHECK(both.model.settings<Sdp>().heads == 2);
  CHECK(both.model.settings<Dispatcher>().heads == 2);
  CHECK(to_yaml(both) == "model:\n  mixer: [sdp, dispatcher]\n  heads: 2\n");
  // A mixer that the mapping lacks keeps its default; a list of one is one mixer.
  CHECK(of_keys({"model.mixer=[sdp, dispatcher]", "model.heads={dispatcher: 8}"}).model.settings<Sdp>().heads == 4);
  CHECK(to_yaml(of_keys({"model.mixer=[dispatcher]"})) == "model:\n  mixer: dispatcher\n");
  CHECK(complaint_of_keys({"model.mixer=[sdp, dispatcher]", "model.heads={spd: 8}"}) ==
        "command line: model.heads: no layer has the mixer 'spd', expected sdp, dispatcher");
  CHECK(complaint_of_keys({"model.mixer=[sdp, dispatcher]", "model.heads={sdp: x}"}) ==
        "command line: model.heads: expected integer, got 'x'");
  CHECK(complaint_of_keys({"model.mixer=[sdp, lstm]"}) == "command line: model.mixer: expected one of sdp, dispatcher, quad_full, quad, "
                                                          "p_only, metric, metric_psd, avgpool, identity, or a list "
                                                          "of them, got a list");
  CHECK(complaint_of_keys({"model.mixer=[]"}).find("or a list of them, got a list") != std::string::npos);
  CHECK(complaint_of_keys({"model.mixer=[sdp, identity]", "model.levels=3"}) ==
        "command line: model.levels: is read only with mixer: dispatcher");
  CHECK(
      complaint_of_keys({"model.mixer=[sdp, metric]", "model.d=12", "model.heads={metric: 5}"}) == "model.heads: 5 does not divide d = 12");
  CHECK(complaint_of_keys({"model.family=retina", "model.mixer=[sdp, metric]"}) ==
        "model.mixer: sdp, metric, but family retina always uses attention; expected sdp");
  CHECK(complaint_of_keys({"model.mixer=[dispatcher, metric]", "model.positions=rope"}) ==
        "model.positions: rope, but mixer dispatcher, metric does not rotate queries and keys; only sdp does");
  CHECK(of_keys({"model.mixer=[dispatcher, sdp]", "model.positions=rope"}).model.embedding.positions == PositionKind::rope);
}

TEST_CASE("config: lists of integers, one of which may stand alone") {
  const ModelConfig c = of_keys({"model={family: topdown, scales: [1, 2, 8], layers: [3, 2, 1]}"}).model;
  CHECK(c.scales.scales == std::vector<int64_t>{1, 2, 8});
  CHECK(c.stack_layers.layers == std::vector<int64_t>{3, 2, 1});
  CHECK(of_keys({"model={family: topdown, scales: [1, 2, 8], layers: 3}"}).model.stack_layers.layers == std::vector<int64_t>{3});
  CHECK(of_keys({"model={family: retina, scales: [1, 4], layers: 3}"}).model.layers == 3);
  CHECK(complaint_of_keys({"model={family: topdown, scales: [1, a]}"}) ==
        "command line: model.scales: expected integer or list of integers, got a list");
  CHECK(complaint_of_keys({"model={family: topdown, layers: {a: 1}}"}) ==
        "command line: model.layers: expected integer or list of integers, got keys and values");
  CHECK(complaint_of_keys({"model={family: retina, layers: [1, 2, 3, 4]}"}) == "command line: model.layers: expected integer, got a list");
  CHECK(complaint_of_keys({"model.scales=[1, 2]"}) == "command line: model.scales: is read only with family: topdown, bottomup, retina");
}

TEST_CASE("config: ranges as a text, as texts or as pairs") {
  const std::vector<Range> expected = {{0, 8}, {8, 256}};
  for (const char* windows : {"\"0:8, 8:256\"", "0:8, 8:256", "0:8,8:256", "[0:8, 8:256]", "[[0, 8], [8, 256]]", "[\"0:8\", [8, 256]]"})
    CHECK(of_keys({"model={family: retina, scales: [1, 4]}", std::string("model.windows=") + windows}).model.settings<Retina>().windows ==
          expected);
  const auto wrong = [](const char* windows) {
    return complaint_of_keys({"model.family=retina", std::string("model.windows=") + windows});
  };
  for (const char* text : {"8", "0:8,", "0:8 8:16", "0:x", ":8", "0-8"})
    CHECK(
        wrong(text) == std::string("command line: model.windows: expected ranges as 0:8, 8:256 or [[0, 8], [8, 256]], got '") + text + "'");
  for (const char* list : {"[0, 8]", "[[0, 8, 9]]", "[[0]]", "[[0, [8]]]", "[[a, 8]]"})
    CHECK(wrong(list) == "command line: model.windows: expected ranges as 0:8, 8:256 or [[0, 8], [8, 256]], got a list");
}

TEST_CASE("config: files named .jsonl or .tsv are read so, unless the format is given") {
  const auto format = [](const std::vector<std::string>& keys) { return load_config<TrainConfig>("", keys).format; };
  CHECK(format({"data=a.txt"}) == format_of(kPlainText));
  CHECK(format({"data=a.jsonl.zst"}) == format_of(kJsonl));
  CHECK(format({"data=[x/a.tsv, b.tsv.gz]"}) == format_of(kTsv));
  CHECK(format({"format=text", "data=a.jsonl"}) == format_of(kPlainText));
  CHECK(format({"data=a.tsv", "format=jsonl"}) == format_of(kJsonl));
  CHECK(keys_of(load_config<TrainConfig>("", {"data=a.jsonl"})).at("format") == "jsonl");
  CHECK(to_yaml(load_config<TrainConfig>("", {"data=a.jsonl"})) == "data: a.jsonl\n");
}

TEST_CASE("config: a coarse model writes no text, whatever sample.tokens is") {
  CHECK(of_keys({"model.family=coarse"}).sample.tokens == 0);
  CHECK(of_keys({"model.family=coarse", "sample.tokens=9"}).sample.tokens == 9);
  CHECK_FALSE(writes_samples(of_keys({"model.family=coarse", "sample.tokens=9"})));
  CHECK(writes_samples(of_keys({"sample.tokens=9"})));
}

TEST_CASE("config: lists and ranges are written as they are read") {
  const TrainConfig written = of_keys({"model={family: retina, scales: [1, 4], windows: \"0:8, 8:64\", head_groups: [0, 1, 1, 1]}"});
  const ScratchFolder folder;
  const TrainConfig again = load_config<TrainConfig>(folder.write("run.yaml", to_yaml(written)));
  CHECK(to_yaml(again.model) == to_yaml(written.model));
  CHECK(contains(to_yaml(written), "  windows: [\"0:8\", \"8:64\"]\n"));
  CHECK(contains(to_yaml(written), "  head_groups: [0, 1, 1, 1]\n"));
  const TrainConfig coarse = of_keys({"model={family: topdown, scales: 1}"});
  CHECK(to_yaml(load_config<TrainConfig>(folder.write("run.yaml", to_yaml(coarse))).model) == to_yaml(coarse.model));
  const TrainConfig one = of_keys({"model={family: retina, scales: [1], windows: \"20:48\"}"});
  CHECK(contains(to_yaml(one), "  windows: \"20:48\"\n"));  // without quotes, a number in YAML 1.1
}

TEST_CASE("config: the line about the build on top of a file") {
  CHECK(build_line("# ricci 0.3.0, commit 1a2b3c4d5e\na: 1\n") == "ricci 0.3.0, commit 1a2b3c4d5e");
  for (const char* other : {"", "a: 1\n", "# my run: ricci 0.3.0\n", "\n# ricci 0.3.0\n"}) CHECK(build_line(other).empty());
}

TEST_CASE("config: names of nanoGPT and transformers are known, and lead to keys that there are") {
  TrainConfig config;
  const std::vector<Field> fields = fields_of(config);
  for (const auto& [here, names] : kOtherNames)
    for (const std::string_view there : names) {
      CAPTURE(there);
      const auto has_key = [&](std::string_view key) {
        return std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.key == key; });
      };
      CHECK((has_key(here) && !has_key(there)));
      CHECK(suggested(complaint_of_keys({std::string(there) + "=1"})) == here);
      if (const std::string inside = "model." + std::string(there); inside != here)
        CHECK(suggested(complaint_of_keys({inside + "=1"})) == here);
    }
  CHECK(complaint_of_keys({"n_layer=6"}) == "command line: unknown key 'n_layer', here it is 'model.layers'");
}

TEST_CASE("config: a word for what there is not leads to no key") {
  for (const char* const word : {"epochs", "num_epochs", "num_train_epochs", "always_save_checkpoint", "compile", "backend", "wandb_log",
           "wandb_project", "eval_only", "num_workers", "fp16", "local_rank", "resume", "verbose", "momentum_decay", "temperature_schedule",
           "cache_dir", "report_to"}) {
    CAPTURE(word);
    CHECK(suggested(complaint_of_keys({std::string(word) + "=1"})) == "");
  }
}

TEST_CASE("config: a key with one letter wrong leads to that key or to none") {
  TrainConfig config;
  const std::vector<Field> fields = fields_of(config);
  std::set<std::string> known;
  for (const Field& field : fields) known.insert(field.key);
  int64_t right = 0, none = 0, wrong = 0;
  const std::string letters = test::everything() && !test::kSanitized ? "aekqtx_2" : "q";
  for (const std::string& key : known) {
    for (size_t at = key.rfind('.') + 1; at < key.size(); ++at)
      for (const char letter : letters) {
        std::string typed = key;
        typed[at] = letter;
        const std::string last = typed.substr(typed.rfind('.') + 1);
        const auto has_last = [&](const auto& names) { return std::count(names.second.begin(), names.second.end(), last) > 0; };
        if (known.contains(typed) || std::any_of(kOtherNames.begin(), kOtherNames.end(), has_last)) continue;
        const std::string hint = suggested(complaint_of_keys({typed + "=1"}));
        right += hint == key, none += hint.empty(), wrong += hint != key && !hint.empty();
        if (hint != key && !hint.empty()) MESSAGE(typed << " -> " << hint);
      }
  }
  CHECK(wrong == 0);
  CHECK(right > 20 * none);
}
