// Makes values on a thread before they are needed, such as the next batch while a step runs. One thread makes all values. Starting a thread
// takes as long as a step of a small model.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>

namespace ricci {

template <class T> class Prefetch {
 public:
  static constexpr size_t kAhead = 2;  // largest number of waiting values

  // make() returns the next value, or nothing at the end. If no thread can be started, next() calls make().
  explicit Prefetch(std::function<std::optional<T>()> make) : make_(std::move(make)) {
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::exception&) {  // no thread can be started
    }
  }
  ~Prefetch() {
    is_stopped_ = true;
    room_.release();
    if (thread_.joinable()) thread_.join();
  }
  Prefetch(const Prefetch&) = delete;

  // Waits for the next value. Returns nothing at the end and after it has thrown an exception from make().
  std::optional<T> next() {
    if (!thread_.joinable()) return make_();
    if (is_over_) return {};
    ready_.acquire();
    std::future<std::optional<T>> made = std::move(made_[taken_++ % kAhead]);
    room_.release();
    is_over_ = true;  // stays true if get() throws
    std::optional<T> value = made.get();
    is_over_ = !value;
    return value;
  }

 private:
  void work() {
    bool has_more = true;
    for (size_t i = 0; has_more; ++i) {
      room_.acquire();
      if (is_stopped_) return;
      has_more = false;
      std::packaged_task<std::optional<T>()> task([&] {
        std::optional<T> value = make_();
        has_more = value.has_value();
        return value;
      });
      made_[i % kAhead] = task.get_future();
      task();
      ready_.release();
    }
  }

  std::function<std::optional<T>()> make_;
  std::array<std::future<std::optional<T>>, kAhead> made_;
  std::counting_semaphore<> room_{kAhead}, ready_{0};
  size_t taken_ = 0;
  bool is_over_ = false;
  std::atomic<bool> is_stopped_ = false;
  std::thread thread_;
};

}  // namespace ricci
