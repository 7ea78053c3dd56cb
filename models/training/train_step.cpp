#include "models/training/train_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "core/cpu/parallel.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/layers.h"
#include "ops/elements/arithmetic.h"
#include "ops/embedding/embedding.h"
#include "ops/optimizers/gradient_norm.h"

namespace ricci {

static_assert(GradientLayout::kBlock == kNormChunk);

namespace {

Tensor scalar(double value, Device device) {
  const Tensor t({}, Dtype::f64, device);
  fill(t, value);
  return t;
}

// Adds integers, which is exact in any order.
double sum_over_ranks(Ranks& ranks, double number) {
  const Tensor sum({1}, Dtype::f64);
  *sum.data<double>() = number;
  ranks.sum(sum);
  ranks.wait();
  return *sum.data<double>();
}

// A number that a double holds exactly.
double hash_of(const std::string& text) {
  uint64_t hash = 0;
  for (const char c : text) hash = (hash * 1099511628211u + static_cast<unsigned char>(c)) % (uint64_t{1} << 52);
  return static_cast<double>(hash);
}

void overwrite(const Tensor& fixed, const Tensor& next) {
  if (static_cast<bool>(fixed) != static_cast<bool>(next) || !(fixed.shape() == next.shape()))
    fail("cuda_graph: a batch of {} after batches of {}", {show(next.shape()), show(fixed.shape())});
  if (fixed) copy(fixed, next);
}

}  // namespace

void StepGraph::take_inputs(const std::vector<WeightedInputs>& batches) {
  if (inputs_.empty()) {
    inputs_ = batches;
    return;
  }
  if (batches.size() != inputs_.size()) fail("cuda_graph: {} batches after {}", {batches.size(), inputs_.size()});
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto& [inputs, weight] = inputs_[i];
    for (Tensor Inputs::*part : {&Inputs::ids_bc, &Inputs::targets, &Inputs::lengths_b, &Inputs::starts_bc})
      overwrite(inputs.*part, batches[i].inputs.*part);
    overwrite(weight, batches[i].weight);
  }
}

const std::vector<Tensor>& StepGraph::run(const std::vector<WeightedInputs>& inputs, const Compute& compute) {
  take_inputs(inputs);
  const auto work = [&] { results_ = compute(inputs_); };
  ++steps_;
  if (steps_ <= 3) results_.clear();
  if (steps_ == 1) work();
  if (steps_ == 2) graph_.measure(work);
  if (steps_ == 3) graph_.record(work);
  if (steps_ >= 3) graph_.launch();
  return results_;
}

TrainStep::TrainStep(Model& model, Optimizer& optimizer, Device device, const TrainStepOptions& options, Ranks& ranks)
    : TrainStep(model, device, options.seed) {
  optimizer_ = &optimizer;
  options_ = options;
  ranks_ = &ranks;
  if (ranks.count() > options.max_ranks)
    fail("max_ranks: {} is the most ranks this run can use, not {}", {options.max_ranks, ranks.count()});
  const std::vector<Parameter*> trained = model.trained_parameters();
  if (ranks.count() > 1) {
    if (options.cuda_graph) fail("cuda_graph: not with several ranks yet");
    std::vector<Range> leaves;
    for (int r = 0; r < ranks.count(); ++r) leaves.push_back(Share::of_rank(options.max_ranks, options.max_ranks, r, ranks.count()).leaves);
    exchange_ = std::make_unique<GradientExchange>(trained, leaves, ranks, options.bucket_bytes);
    first_chunk_ = {0};
    for (const Parameter* p : trained) first_chunk_.push_back(first_chunk_.back() + norm_chunks_of(p->value.size()));
  } else if (options.max_ranks > 1) {
    sums_ = std::make_unique<LeafSums>(trained, options.max_ranks, Range{0, options.max_ranks});
  }
  if (!options.cuda_graph) return;
  graph_ = std::make_unique<StepGraph>(device);
  first_stream_ = Tensor({}, Dtype::i64, device);
}

// Dropout reads the streams from step * 2^32 on.
RandomState TrainStep::random_of(int64_t step) const { return {options_.seed, static_cast<uint64_t>(step) << 32}; }

// The same streams, counted from a number that recorded kernels find in the device's memory.
RandomState TrainStep::random_in_memory(int64_t step) const {
  const Tensor first({}, Dtype::i64);
  const RandomState random = random_of(step);
  *first.data<int64_t>() = static_cast<int64_t>(random.next_stream);
  copy(first_stream_, first);
  return {random.seed, 0, 0, reinterpret_cast<const uint64_t*>(first_stream_.data<int64_t>())};
}

Share TrainStep::share_of(size_t micro_batches) const {
  const auto given = static_cast<int64_t>(micro_batches), all = options_.micro_batches ? options_.micro_batches : given;
  if (all < options_.max_ranks) fail("train step: max_ranks is {}, but there are {} micro-batches", {options_.max_ranks, all});
  const Share share = Share::of_rank(all, options_.max_ranks, ranks_->rank(), ranks_->count());
  const Range mine = share.micro_batches();
  if (given != mine.hi - mine.lo) fail("train step: {} micro-batches, expected {} of {}", {given, mine.hi - mine.lo, all});
  return share;
}

// The weight of each micro-batch's mean in the mean of the step: its share of the tokens that the loss counts.
std::vector<double> TrainStep::weights_of(const std::vector<MicroBatch>& micro_batches, const Share& share) const {
  if (share.all_micro_batches == 1) return {micro_batches[0].scored ? 1.0 : 0.0};  // counting may have to wait for a GPU
  std::vector<double> counts;
  for (const MicroBatch& one : micro_batches) counts.push_back(static_cast<double>(model_.counted(one.inputs, one.scored)));
  double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  if (ranks_->count() > 1) all = sum_over_ranks(*ranks_, all);
  for (double& count : counts) count = all > 0 ? count / all : 0;
  return counts;
}

std::vector<WeightedInputs> TrainStep::weighted(const std::vector<MicroBatch>& micro_batches, const Share& share) const {
  const std::vector<double> weights = weights_of(micro_batches, share);
  std::vector<WeightedInputs> all;
  for (size_t i = 0; i < micro_batches.size(); ++i) all.push_back({micro_batches[i].inputs, scalar(weights[i], device_)});
  return all;
}

std::vector<Tensor> TrainStep::gradient(const Work& work) const {
  const Training training;
  const auto& [leaves, mine] = std::pair(work.share.leaves, work.share.micro_batches());
  std::vector<Tensor> losses;
  RandomState random = work.random;
  for (int64_t leaf = leaves.lo; leaf < leaves.hi; ++leaf) {
    if (leaf > leaves.lo) work.sums->end_leaf();
    const Range of_leaf = work.share.micro_batches(leaf);
    for (int64_t i = of_leaf.lo; i < of_leaf.hi; ++i) {
      const auto& [inputs, weight] = work.micro_batches[static_cast<size_t>(i - mine.lo)];
      random.micro_batch = static_cast<uint64_t>(i);
      set_random_state(random);
      Tape tape(work.options);
      const Tensor loss = model_.loss(inputs);
      const bool is_last = i + 1 == mine.hi;
      std::optional<Ranks::Testing> testing;
      if (work.listener && is_last) testing.emplace(*ranks_);
      tape.backward(loss, weight, is_last ? work.listener : nullptr);
      losses.push_back(loss.detached() * weight);
    }
  }
  return losses;
}

Tensor TrainStep::total_of(const std::vector<Tensor>& losses) const {
  const Tensor total = zeros({}, Dtype::f64, device_);
  for (const Tensor& loss : losses) add_to(total, loss);
  return total;
}

Tensor TrainStep::loss_and_gradient(const std::vector<WeightedInputs>& inputs, const Share& share, RandomState random) const {
  if (sums_) sums_->begin();
  const Tensor loss = total_of(gradient({inputs, share, random, sums_.get()}));
  for (size_t p = 0; sums_ && p < sums_->parameters(); ++p) sums_->finish(p);
  return loss;
}

double TrainStep::forward_backward(const std::vector<MicroBatch>& micro_batches, int64_t step) const {
  const Share share = share_of(micro_batches.size());
  return item(loss_and_gradient(weighted(micro_batches, share), share, random_of(step)));
}

StepResult TrainStep::run(const std::vector<MicroBatch>& micro_batches, int64_t step, double learning_rate,
    const std::vector<double>& for_ranks, const std::function<void()>& meanwhile) {
  for (const Parameter* p : parameters_)
    if (p->grad) fail("train step: the gradient of {} is left from before", {p->path});
  const Share share = share_of(micro_batches.size());
  const std::vector<WeightedInputs> inputs = weighted(micro_batches, share);
  if (exchange_ || graph_) optimizer_->begin_step(learning_rate);
  if (exchange_) return run_shared(inputs, share, step, for_ranks, meanwhile);
  from_ranks_ = for_ranks;
  const RandomState random = graph_ ? random_in_memory(step) : random_of(step);
  const auto work = [&](const std::vector<WeightedInputs>& from) {
    const Tensor loss = loss_and_gradient(from, share, random);
    const StopWhen never([] { return false; });  // an update is made as a whole, or not begun
    if (!graph_) optimizer_->begin_step(learning_rate);
    return std::vector<Tensor>{loss, optimizer_->update(options_.clip, loss)};
  };
  const std::vector<Tensor> results = graph_ ? graph_->run(inputs, work) : work(inputs);
  set_random_state(random_of(step + 1));
  meanwhile();
  return {item(results[0]), item(results[1])};  // only now is a GPU waited for
}

// One sum sends every number of the step to all ranks, each with one owner: the sums of the norm's chunks, the losses of the micro-batches,
// and from each rank a hash of the parameters that it reached and its own numbers.
StepResult TrainStep::run_shared(const std::vector<WeightedInputs>& inputs, const Share& share, int64_t step,
    const std::vector<double>& for_ranks, const std::function<void()>& meanwhile) {
  exchange_->begin();
  const std::vector<Tensor> losses = gradient({inputs, share, random_of(step), &exchange_->leaves(), exchange_.get()});
  const std::vector<Tensor> gradients = exchange_->finish();

  const int64_t chunks = first_chunk_.back(), all = share.all_micro_batches, per_rank = 1 + static_cast<int64_t>(for_ranks.size());
  const Tensor numbers = zeros({chunks + all + per_rank * ranks_->count()}, Dtype::f64, device_);
  std::vector<int64_t> first;
  for (const OwnedBlock& block : exchange_->layout().blocks_of(ranks_->rank()))
    first.push_back(first_chunk_[block.parameter] + block.elements.lo / kNormChunk);
  chunk_sums(gradients, first, numbers);
  for (size_t i = 0; i < losses.size(); ++i)
    copy(numbers.rows(chunks + share.micro_batches().lo + static_cast<int64_t>(i), 1), losses[i].reshaped({1}));
  std::vector<double> mine = for_ranks;
  mine.insert(mine.begin(), hash_of(exchange_->reached()));
  copy(numbers.rows(chunks + all + per_rank * ranks_->rank(), per_rank), tensor_of(mine, {per_rank}));
  ranks_->sum(numbers);
  ranks_->wait();

  std::vector<Tensor> losses_of_all;
  for (int64_t i = 0; i < all; ++i) losses_of_all.push_back(numbers.rows(chunks + i, 1).reshaped({}));
  const Tensor loss = total_of(losses_of_all);
  const Tensor norm = norm_of(numbers);
  optimizer_->update_blocks(gradients, clip_factor(norm, options_.clip, loss));
  exchange_->gather_values();
  set_random_state(random_of(step + 1));
  meanwhile();
  take_from_ranks(to(numbers.rows(chunks + all, per_rank * ranks_->count()), Device::cpu), step);
  return {item(loss), item(norm)};
}

// As gradient_norm adds them up: without the parameters that no gradient reached.
Tensor TrainStep::norm_of(const Tensor& numbers) const {
  const std::string& reached = exchange_->reached();
  const int64_t all = first_chunk_.back();
  if (reached.find('0') == reached.npos) return norm_of_chunks(numbers.rows(0, all));
  int64_t count = 0;
  for (size_t i = 0; i < reached.size(); ++i) count += reached[i] == '1' ? first_chunk_[i + 1] - first_chunk_[i] : 0;
  const Tensor chunks = like(numbers, {count});
  count = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    const int64_t of_parameter = first_chunk_[i + 1] - first_chunk_[i];
    if (reached[i] != '1' || of_parameter == 0) continue;
    copy(chunks.rows(count, of_parameter), numbers.rows(first_chunk_[i], of_parameter));
    count += of_parameter;
  }
  return norm_of_chunks(chunks);
}

// Error: another rank reached other parameters.
void TrainStep::take_from_ranks(const Tensor& numbers, int64_t step) {
  const int64_t per_rank = numbers.size() / ranks_->count();
  const double* const from = numbers.data<double>();
  from_ranks_.clear();
  bool differ = false;
  for (int64_t r = 0; r < ranks_->count(); ++r) {
    differ |= from[r * per_rank] != from[0];
    from_ranks_.insert(from_ranks_.end(), from + r * per_rank + 1, from + (r + 1) * per_rank);
  }
  if (!differ) return;
  const std::vector<std::string> reached = ranks_->from_all(exchange_->reached());
  const std::vector<Parameter*>& trained = exchange_->parameters();
  for (size_t r = 1; r < reached.size(); ++r)
    for (size_t i = 0; i < trained.size(); ++i)
      if (const bool there = reached[r][i] == '1'; there != (reached[0][i] == '1'))
        fail("step {}: {} has no gradient for {}, rank {} has",
            {step + 1, ranks_->name(there ? 0 : static_cast<int>(r)), trained[i]->path, there ? r : size_t{0}});
}

// The first error of a rank that found the op, for all.
void TrainStep::explain_nonfinite(const std::vector<MicroBatch>& micro_batches, int64_t step, double loss) const {
  const std::string what = std::isfinite(loss) ? "the gradient is not finite" : format_message("the loss is {}", {loss});
  const Share share = share_of(micro_batches.size());
  const std::vector<WeightedInputs> inputs = weighted(micro_batches, share);
  LeafSums of_none({}, share.max_ranks, share.leaves);
  std::string found;
  for (const Parameter* p : parameters_) p->grad = {};  // a NaN that is there already would be found in the op that adds to it
  try {
    check_embedding_ids(device_);  // a GPU has noted the first bad id, which made the NaN
    gradient({inputs, share, random_of(step), &of_none, nullptr, {.find_nonfinite = true}});
  } catch (const Error& error) {
    found = error.what();
  }
  ranks_->wait_patiently();  // a search takes as long as its micro-batches
  for (const std::string& each : ranks_->from_all(found))
    if (!each.empty()) fail("step {}: {}: {}", {step + 1, what, each});
  fail("step {}: {}", {step + 1, what});
}

}  // namespace ricci
