// Ranks as threads of one test program. Sums are added up in the order of the ranks.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "cuda/ranks/ranks.h"

namespace ricci {

// The rendezvous of the threads.
class Meeting {
 public:
  explicit Meeting(int ranks) : ranks_(static_cast<size_t>(ranks)), given_(ranks_) {}

  // Returns the bytes of every rank. Errors: another rank failed or made a different call.
  std::vector<std::string> exchange(int rank, const std::string& call, std::string bytes) {
    std::unique_lock locked(lock_);
    if (arrived_ > 0 && call != call_) fail("rank {} comes to {}, but another rank to {}", {rank, call, call_});
    call_ = call;
    given_[static_cast<size_t>(rank)] = std::move(bytes);
    const int64_t round = round_;
    if (++arrived_ == ranks_) {
      all_ = given_;
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(locked, [&] { return failed_ || round_ > round; });
    if (round_ == round) fail("rank {}: another rank failed", {rank});
    return all_;
  }
  void fail_all() {
    const std::lock_guard locked(lock_);
    failed_ = true;
    changed_.notify_all();
  }

 private:
  size_t ranks_, arrived_ = 0;
  std::mutex lock_;
  std::condition_variable changed_;
  std::string call_;
  std::vector<std::string> given_, all_;
  int64_t round_ = 0;
  bool failed_ = false;
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(Meeting& meeting, int rank, int count) : meeting_(meeting) {
    rank_ = rank;
    local_ = rank;
    count_ = count;
    machines_.assign(static_cast<size_t>(count), "node");
  }

 private:
  void meet(double) override { meeting_.exchange(rank_, "a meeting", ""); }
  void sum_on_host(void* data, int64_t size, Dtype dtype) override {
    const auto bytes = static_cast<size_t>(size * size_of(dtype));
    const auto all =
        meeting_.exchange(rank_, format_message("a sum of {} {}", {size, name_of(dtype)}), {static_cast<const char*>(data), bytes});
    std::memcpy(data, all[0].data(), bytes);
    for (size_t r = 1; r < all.size(); ++r) {
      if (dtype == Dtype::f32) add<float>(data, all[r], size);
      if (dtype == Dtype::f64) add<double>(data, all[r], size);
      if (dtype == Dtype::bf16) add<bf16>(data, all[r], size);
    }
  }
  void send_from(int rank, void* data, int64_t bytes) override {
    const std::string mine(static_cast<const char*>(data), static_cast<size_t>(bytes));
    const auto all = meeting_.exchange(rank_, format_message("{} bytes of rank {}", {bytes, rank}), mine);
    std::memcpy(data, all[static_cast<size_t>(rank)].data(), static_cast<size_t>(bytes));
  }
  template <class T> static void add(void* sums, const std::string& terms, int64_t size) {
    T* const sum = static_cast<T*>(sums);
    const T* const term = reinterpret_cast<const T*>(terms.data());
    for (int64_t i = 0; i < size; ++i) sum[i] = T(sum[i] + term[i]);
  }

  Meeting& meeting_;
};

// Calls f on each rank, on a separate thread, and returns the errors of all, "" without one. An error that another rank failed is returned
// as "".
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
