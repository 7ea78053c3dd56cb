#include "cuda/ranks/device_ranks.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace ricci {
namespace {

std::vector<Tensor> all_of(const std::vector<Ranks::Tensors>& outgoing, const std::vector<Ranks::Tensors>& incoming) {
  std::vector<Tensor> all;
  for (const std::vector<Ranks::Tensors>* lists : {&outgoing, &incoming})
    for (const Ranks::Tensors& list : *lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

size_t bytes_of(const Tensor& t) { return static_cast<size_t>(t.bytes()); }

}  // namespace

DeviceTable DeviceRanks::table_of(Device device, Ranks& carrier) {
#ifdef RICCI_HAS_CUDA
  if (device == Device::cuda) return nccl_table();
#endif
  if (device != Device::cuda_emulated) fail("ranks: nothing carries tensors of {}", {name_of(device)});
  return emulated_table(carrier);
}

DeviceRanks::DeviceRanks(std::unique_ptr<Ranks> within, MakeTable make_table)
    : within_(std::move(within)), make_table_(std::move(make_table)) {
  rank_ = within_->rank();
  count_ = within_->count();
  local_ = within_->local();
  machines_.clear();
  for (int r = 0; r < count_; ++r) machines_.push_back(within_->machine(r));
}

std::string DeviceRanks::carrier(Device device) const {
  return device == Device::cuda ? make_table_(device, *within_).version : within_->carrier(device);
}

void DeviceRanks::end_all(const std::string& line) {
  within_->end_all(line);
  __builtin_unreachable();
}

void DeviceRanks::begin_testing() { testing_ = std::make_unique<Testing>(*within_); }
void DeviceRanks::end_testing() { testing_.reset(); }

std::string about_gpus(const Ranks& ranks, const std::vector<std::string>& gpus) {
  std::map<std::string, std::map<std::string, int>> users;  // by machine and GPU
  for (int r = 0; r < ranks.count(); ++r) ++users[ranks.machine(r)][gpus[static_cast<size_t>(r)]];
  std::string warning;
  for (const auto& [machine, of_gpu] : users) {
    size_t here = 0;
    for (const auto& [gpu, count] : of_gpu) here += static_cast<size_t>(count);
    const size_t count = of_gpu.size();
    if (here > count)
      fail("device cuda: {} has {} GPU{} for {} ranks; mpirun --map-by ppr:{}:node", {machine, count, count == 1 ? "" : "s", here, count});
    if (here > 1 && of_gpu.begin()->first.starts_with("1 "))
      warning =
          format_message("each rank on {} sees one GPU only, so that NCCL misses NVLink: --gpus-per-node, not --gpus-per-task", {machine});
  }
  return warning;
}

// ---- Errors and states of the table

// NCCL: unhandled system error in send of step 812; NCCL_DEBUG=INFO prints details
void DeviceRanks::check(Exchange& e, int error, const char* call) {
  if (error == DeviceTable::kInProgress)
    within_->wait_until([&] {
      int state = 0;
      const int failed = e.table.state(state);
      error = failed ? failed : state;
      return error != DeviceTable::kInProgress;
    });
  if (error == 0) return;
  const std::string text = e.table.text(error);
  e.table.abort();
  fail("NCCL: {} in {}{}; NCCL_DEBUG=INFO prints details", {text, call, where().empty() ? "" : " of " + where()});
}

// The first error by now, on any rank, in an operation that runs.
void DeviceRanks::look_at(Exchange& e) {
  int state = 0;
  const int error = e.table.state(state);
  check(e, error ? error : state, "an exchange");
}

// The first exchange of a device joins its ranks.
DeviceRanks::Exchange& DeviceRanks::exchange(Device device) {
  if (const auto known = exchanges_.find(device); known != exchanges_.end()) return known->second;
  Exchange& e = exchanges_.try_emplace(device, make_table_(device, *within_), device).first->second;
  std::string id;
  if (rank_ == 0) check(e, e.table.make_id(id), "make_id");
  check(e, e.table.join(within_->from_first(id), rank_, count_), "join");
  return e;
}

// The emulator runs what waits on its streams when it likes, and carries it by these ranks: it has done so before something else is begun,
// so that everything is in the same order on every rank.
Ranks& DeviceRanks::for_the_cpu() {
  if (const auto e = exchanges_.find(Device::cuda_emulated); e != exchanges_.end()) e->second.stream.synchronize();
  return *within_;
}

// ---- Exchanges

template <class F> void DeviceRanks::begin(const Tensor& t, const char* call, const F& f) {
  Exchange& e = exchange(t.device());
  e.stream.wait_for(Stream::main(t.device()));
  const OnStream on(e.stream);
  check(e, f(e.table), call);
  e.kept.push_back(t);
}

void DeviceRanks::all_to_all(const std::vector<Tensors>& outgoing, const std::vector<Tensors>& incoming) {
  const std::vector<Tensor> all = all_of(outgoing, incoming);
  if (all.empty()) return;
  const Device device = all[0].device();
  if (device == Device::cpu) return for_the_cpu().all_to_all(outgoing, incoming);
  begin(all[0], "all_to_all", [&](DeviceTable& table) {
    int failed = 0;
    const auto note = [&](int error) {
      if (error != DeviceTable::kInProgress && !failed) failed = error;
    };
    note(table.begin_group());
    for (int q = 0; q < count_ && !failed; ++q) {
      if (q == rank_) continue;
      for (const Tensor& sent : outgoing[static_cast<size_t>(q)]) note(table.send(sent.raw(), bytes_of(sent), q));
      for (const Tensor& received : incoming[static_cast<size_t>(q)]) note(table.receive(received.raw(), bytes_of(received), q));
    }
    const int ended = table.end_group();
    return failed ? failed : ended;
  });
  std::vector<Tensor>& kept = exchange(device).kept;
  kept.insert(kept.end(), all.begin(), all.end());
}

void DeviceRanks::all_gather(const Tensor& equal_shares) {
  if (equal_shares.device() == Device::cpu) return for_the_cpu().all_gather(equal_shares);
  if (equal_shares.size() % count_) fail("ranks: {} elements cannot be gathered in {} equal shares", {equal_shares.size(), count_});
  begin(equal_shares, "all_gather", [&](DeviceTable& table) {
    return table.all_gather(equal_shares.raw(), bytes_of(equal_shares) / static_cast<size_t>(count_), rank_);
  });
}

void DeviceRanks::sum(const Tensor& numbers) {
  if (numbers.device() == Device::cpu) return for_the_cpu().sum(numbers);
  begin(numbers, "sum", [&](DeviceTable& table) { return table.sum(numbers.data<double>(), static_cast<size_t>(numbers.size())); });
}

void DeviceRanks::from_first(const Tensor& t) {
  if (t.device() == Device::cpu) return for_the_cpu().from_first(t);
  begin(t, "from_first", [&](DeviceTable& table) { return table.from_first(t.raw(), bytes_of(t)); });
}

// ---- Waiting

// The device may still compute what the host has launched; that is no time that an exchange costs.
void DeviceRanks::wait_for(Exchange& e, Device device) {
  const auto has_ended = [&] {
    look_at(e);
    return e.stream.has_come_here();
  };
  if (has_ended()) return;
  const double before = within_->waited();
  within_->wait_until([&] { return has_ended() || Stream::main(device).has_come_here(); });
  computed_ += within_->waited() - before;
  within_->wait_until(has_ended);
}

void DeviceRanks::wait_but_for(int64_t last) {
  for (auto& [device, e] : exchanges_) {
    if (e.kept.empty()) continue;
    wait_for(e, device);
    e.kept.clear();
  }
  within_->wait_but_for(last);
}

void DeviceRanks::wait_patiently() {
  wait();
  for_the_cpu().wait_patiently();
}

void DeviceRanks::wait_for_first() {
  wait();
  for_the_cpu().wait_for_first();
}

}  // namespace ricci
