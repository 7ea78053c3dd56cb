#include "cuda/ranks/ranks.h"

#include <errno.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "core/error.h"
#include "cuda/device/gpus.h"
#include "cuda/ranks/device_ranks.h"
#include "cuda/ranks/launcher.h"
#include "cuda/ranks/roll_call.h"

namespace ricci {
namespace {

Transport& transport() {
  static Transport one{};
  return one;
}

// Null for a process alone. A program that ends without leave() has met an error, and does not wait for the others.
Ranks* several = nullptr;
bool has_joined = false;

// A text as a tensor, for which there is no dtype of bytes: eight to an i64, the last ones zero.
Tensor words_of(const std::string& text, size_t words) {
  const Tensor t({static_cast<int64_t>(words)}, Dtype::i64);
  std::memset(t.raw(), 0, words * sizeof(int64_t));
  std::memcpy(t.raw(), text.data(), text.size());
  return t;
}

size_t words_in(size_t bytes) { return (bytes + sizeof(int64_t) - 1) / sizeof(int64_t); }

}  // namespace

Ranks& Ranks::alone() {
  static Ranks one;
  return one;
}

Ranks& Ranks::joined() { return several ? *several : alone(); }

Ranks& Ranks::join() {
  if (has_joined) return joined();
  const Launcher launcher = find_launcher();
  if (launcher.name.empty() || (launcher.counts && launcher.count == 1)) return alone();
  if (!transport().join)
    fail("started as process {} of {} by {}, but this program was built without MPI; install libopenmpi-dev and build again",
        {launcher.rank + 1, launcher.count, launcher.name});
  std::unique_ptr<Ranks> found = transport().join();
  has_joined = true;
  if (launcher.counts && found->count() != launcher.count)
    fail("{} started {} processes, but MPI sees {}; use srun --mpi=pmix (srun --mpi=list), or mpirun inside the job",
        {launcher.name, launcher.count, found->count()});
  if (found->count() == 1) return alone();
  use_gpu(found->local());
  several = new DeviceRanks(std::move(found));
  return *several;
}

void Ranks::leave() { delete std::exchange(several, nullptr); }

bool set_transport(const Transport& t) {
  transport() = t;
  return true;
}

std::string transport_version() { return transport().version ? transport().version() : ""; }

std::string Ranks::name(int rank) const { return format_message("rank {} on {}", {rank, machine(rank)}); }

int Ranks::machine_count() const { return static_cast<int>(std::set<std::string>(machines_.begin(), machines_.end()).size()); }

std::string Ranks::carrier(Device) const { return ""; }

void Ranks::all_to_all(const std::vector<Tensors>&, const std::vector<Tensors>&) {}
void Ranks::all_gather(const Tensor&) {}
void Ranks::sum(const Tensor&) {}
void Ranks::from_first(const Tensor&) {}
void Ranks::wait_but_for(int64_t) {}
void Ranks::wait_patiently() {}

void Ranks::wait_until(const std::function<bool()>& done) {
  ricci::wait_until(done, [](double) {});
}

std::string Ranks::from_first(const std::string& text) {
  if (count_ == 1) return text;
  const Tensor length({1}, Dtype::i64);
  *length.data<int64_t>() = static_cast<int64_t>(text.size());
  from_first(length);
  wait();
  const auto bytes = static_cast<size_t>(*length.data<int64_t>());
  const Tensor words = words_of(rank_ == 0 ? text : "", words_in(bytes));
  from_first(words);
  wait();
  return {static_cast<const char*>(words.raw()), bytes};
}

std::vector<std::string> Ranks::from_all(const std::string& text) {
  if (count_ == 1) return {text};
  const auto ranks = static_cast<size_t>(count_), mine = static_cast<size_t>(rank_);
  const Tensor lengths({count_}, Dtype::i64);
  lengths.data<int64_t>()[mine] = static_cast<int64_t>(text.size());
  all_gather(lengths);
  wait();
  const int64_t* const length = lengths.data<int64_t>();
  const size_t words = words_in(static_cast<size_t>(*std::max_element(length, length + ranks)));
  const Tensor all({count_, static_cast<int64_t>(words)}, Dtype::i64);
  std::memcpy(all.data<int64_t>() + mine * words, words_of(text, words).raw(), words * sizeof(int64_t));
  all_gather(all);
  wait();
  std::vector<std::string> texts;
  for (size_t r = 0; r < ranks; ++r)
    texts.emplace_back(reinterpret_cast<const char*>(all.data<int64_t>() + r * words), static_cast<size_t>(length[r]));
  return texts;
}

std::vector<double> Ranks::sum(std::vector<double> numbers) {
  if (count_ == 1) return numbers;
  const Tensor t({static_cast<int64_t>(numbers.size())}, Dtype::f64);
  std::copy(numbers.begin(), numbers.end(), t.data<double>());
  sum(t);
  wait();
  std::copy_n(t.data<double>(), numbers.size(), numbers.begin());
  return numbers;
}

std::string Ranks::as_told_here(const std::string& error) const {
  if (rank_ == 0 && where().empty()) return error;
  const bool says_where = where().empty() || error.starts_with(where());
  return name(rank_) + ": " + (says_where ? "" : where() + ": ") + error;
}

void Ranks::end_all(const std::string& line) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, line.c_str());
  std::_Exit(1);
}

}  // namespace ricci
