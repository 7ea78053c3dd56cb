// Values that a thread of its own makes ahead of the one that takes them.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/cpu/worker_thread.h"

namespace ricci {

template <class T> class Prefetch {
 public:
  // make() returns the next value, or nothing at the end. It is called by one thread, up to `ahead` values before they are taken.
  // Where the system has no thread left for this process, a value is made when it is taken.
  Prefetch(std::function<std::optional<T>()> make, size_t ahead) : make_(std::move(make)), ahead_(ahead) {
    try {
      thread_ = start_worker([this] { work(); });
    } catch (const std::exception&) {  // no thread left, or no memory for it
    }
  }
  ~Prefetch() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Prefetch(const Prefetch&) = delete;

  // The next value, waited for; nothing at the end. Throws what make() threw, in its turn.
  std::optional<T> next() {
    if (!thread_.joinable()) return make_();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !values_.empty() || ended_; });
    if (values_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return {};
    }
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return value;
  }

 private:
  // A function of its own: where the loop below caught exceptions itself, g++ 12 with -O1 kept the value of the round before.
  std::optional<T> make(std::exception_ptr& error) const {
    try {
      return make_();
    } catch (...) {
      error = std::current_exception();
      return {};
    }
  }

  void work() {
    for (;;) {
      std::exception_ptr error;
      std::optional<T> value = make(error);
      std::unique_lock lock(mutex_);
      ended_ = !value;
      error_ = error;
      if (value) values_.push_back(std::move(*value));
      changed_.notify_all();
      changed_.wait(lock, [&] { return values_.size() < ahead_ || stopped_; });
      if (ended_ || stopped_) return;
    }
  }

  std::function<std::optional<T>()> make_;
  size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
  bool stopped_ = false, ended_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace ricci
