// Ranks as threads of one test program: what is sent is copied when it is begun and arrives in wait(), and until then nobody may write to
// it or read what is to arrive.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/ranks/ranks.h"

namespace ricci {

// The place where the threads leave what they send.
class Meeting {
 public:
  explicit Meeting(int ranks) : ranks_(ranks) {}

  using Bytes = std::vector<char>;
  using Row = std::vector<Bytes>;  // for each rank
  struct Exchange {
    std::string kind;
    std::map<int, Row> from;
    int collected = 0;
  };

  void post(int64_t number, int rank, const std::string& kind, Row row) {
    const std::lock_guard locked(lock_);
    Exchange& exchange = exchanges_[number];
    if (exchange.from.empty()) exchange.kind = kind;
    if (exchange.kind != kind) fail("rank {} begins {} where another began {}", {rank, kind, exchange.kind});
    exchange.from[rank] = std::move(row);
    changed_.notify_all();
  }
  // What each rank sent to `rank`.
  Row collect(int64_t number, int rank) {
    std::unique_lock locked(lock_);
    Exchange& exchange = exchanges_[number];
    const auto all_are_here = [&] { return static_cast<int>(exchange.from.size()) == ranks_; };
    changed_.wait_for(locked, std::chrono::seconds(120), [&] { return failed_ || all_are_here(); });
    if (!all_are_here()) fail("rank {}: another rank {}", {rank, failed_ ? "failed" : "does not come"});
    Row row;
    for (auto& [from, bytes] : exchange.from) row.push_back(bytes[static_cast<size_t>(rank)]);
    if (++exchange.collected == ranks_) exchanges_.erase(number);
    return row;
  }
  void fail_all() {
    const std::lock_guard locked(lock_);
    failed_ = true;
    changed_.notify_all();
  }

 private:
  int ranks_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::map<int64_t, Exchange> exchanges_;
  bool failed_ = false;
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(Meeting& meeting, int rank, int count) : meeting_(meeting) {
    rank_ = local_ = rank, count_ = count;
    machines_.assign(static_cast<size_t>(count), "node");
  }

  void all_to_all(const std::vector<Tensors>& to, const std::vector<Tensors>& from) override {
    if (static_cast<int>(to.size()) != count_ || to.size() != from.size()) fail("all_to_all: not one tensor per rank", {});
    begin("all_to_all", to, from, [this](int q) { return q != rank_; });
  }
  void all_gather(const Tensor& shares) override {
    const Tensor flat = shares.reshaped({shares.size()});
    if (shares.size() % count_) fail("all_gather: {} elements of {} ranks", {shares.size(), count_});
    const int64_t share = shares.size() / count_;
    std::vector<Tensors> to, from;
    for (int q = 0; q < count_; ++q) {
      to.push_back({flat.rows(rank_ * share, share)});
      from.push_back({flat.rows(q * share, share)});
    }
    begin("all_gather", to, from, [this](int q) { return q != rank_; });
  }
  void sum(const Tensor& numbers) override {
    const std::vector<Tensors> all(static_cast<size_t>(count_), {numbers});
    begin("sum", all, {}, [](int) { return true; });
    pending_.back().from = all;
  }
  void from_first(const Tensor& t) override {
    const std::vector<Tensors> all(static_cast<size_t>(count_), {t});
    begin("from_first", all, {}, [](int) { return true; });
    pending_.back().from = all;
  }
  using Ranks::from_first;

  void wait_but_for(int64_t last) override {
    for (; static_cast<int64_t>(pending_.size()) > last; pending_.pop_front()) {
      const Pending& one = pending_.front();
      for (size_t q = 0; q < one.sent.size(); ++q)
        if (!one.sent[q].empty() && one.sent[q] != bytes_in(one.to[q]))
          fail("{}: rank {} wrote to what it sends before wait()", {one.kind, rank_});
      const Meeting::Row row = meeting_.collect(one.number, rank_);
      if (one.kind == "sum") add(one, row);
      else if (one.kind == "from_first") std::memcpy(one.from[0][0].raw(), row[0].data(), row[0].size());
      else take(one, row);
    }
  }
  void wait_patiently() override { wait(); }

 private:
  struct Pending {
    std::string kind;
    int64_t number;
    std::vector<Tensors> to, from;
    Meeting::Row sent;
  };
  static Meeting::Bytes bytes_in(const Tensors& tensors) {
    Meeting::Bytes bytes;
    for (const Tensor& t : tensors) {
      const char* const first = static_cast<const char*>(t.raw());
      bytes.insert(bytes.end(), first, first + t.bytes());
    }
    return bytes;
  }

  template <class Moves>
  void begin(const std::string& kind, const std::vector<Tensors>& to, const std::vector<Tensors>& from, const Moves& moves) {
    Meeting::Row row(to.size());
    for (size_t q = 0; q < to.size(); ++q) {
      if (moves(static_cast<int>(q))) row[q] = bytes_in(to[q]);
    }
    for (size_t q = 0; q < from.size(); ++q)  // so that who reads too early gets NaN
      for (const Tensor& t : from[q])
        if (moves(static_cast<int>(q))) std::memset(t.raw(), 0xff, static_cast<size_t>(t.bytes()));
    pending_.push_back({kind, next_, to, from, row});
    meeting_.post(next_++, rank_, kind, std::move(row));
  }
  void take(const Pending& one, const Meeting::Row& row) const {
    for (size_t q = 0; q < row.size(); ++q) {
      if (static_cast<int>(q) == rank_) continue;
      const size_t expected = bytes_in(one.from[q]).size();
      if (row[q].size() != expected)
        fail("{}: rank {} sent {} bytes to rank {}, expected {}", {one.kind, q, row[q].size(), rank_, expected});
      const char* next = row[q].data();
      for (const Tensor& t : one.from[q]) {
        if (t.size() > 0) std::memcpy(t.raw(), next, static_cast<size_t>(t.bytes()));
        next += t.bytes();
      }
    }
  }
  // From the last rank to the first: the order must not matter.
  static void add(const Pending& one, const Meeting::Row& row) {
    const Tensor& sum = one.from[0][0];
    std::fill_n(sum.data<double>(), sum.size(), 0.0);
    for (size_t q = row.size(); q-- > 0;) {
      if (row[q].size() != static_cast<size_t>(sum.bytes())) fail("sum: of {} and {} bytes", {row[q].size(), sum.bytes()});
      const double* const terms = reinterpret_cast<const double*>(row[q].data());
      for (int64_t i = 0; i < sum.size(); ++i) sum.data<double>()[i] += terms[i];
    }
  }

  Meeting& meeting_;
  int64_t next_ = 0;
  std::deque<Pending> pending_;
};

// Calls f on each rank, on a thread of its own, and returns the errors of all, "" where there was none. A rank whose error was that another
// did not come counts as one without.
inline std::vector<std::string> on_ranks(int count, const std::function<void(Ranks&)>& f) {
  Meeting meeting(count);
  std::vector<std::string> errors(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      ThreadRanks ranks(meeting, rank, count);
      try {
        f(ranks);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
        meeting.fail_all();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::string& error : errors)
    if (error.ends_with("another rank failed")) error.clear();
  return errors;
}

}  // namespace ricci
