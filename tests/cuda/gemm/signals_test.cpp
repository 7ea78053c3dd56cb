// Signals that meet matrix products, in a program whose handlers run on the stack of the thread.
#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/time.h>

#include <csignal>
#include <thread>

#include "core/cpu/parallel.h"
#include "core/cpu/worker_thread.h"
#include "cuda/gemm/onednn/product.h"
#include "tests/cuda/gemm/cases.h"
#include "tests/skip.h"

using namespace gemm_cases;

namespace {

volatile std::sig_atomic_t count = 0, outside = 0;  // handled signals; those whose handler did not run on the stack of its thread
const char *stack_begin = nullptr, *stack_end = nullptr;

void answer(int) {
  const char* const here = static_cast<const char*>(__builtin_frame_address(0));
  count = count + 1;
  if (here < stack_begin || here >= stack_end) outside = outside + 1;
}

// While alive, answer() handles a signal.
class Handler {
 public:
  explicit Handler(int signal) : signal_(signal) {
    count = 0;
    outside = 0;
    struct sigaction action = {};
    action.sa_handler = answer;
    ::sigaction(signal, &action, &before_);
  }
  ~Handler() { ::sigaction(signal_, &before_, nullptr); }

 private:
  int signal_;
  struct sigaction before_ = {};
};

bool blocks(int signal) {
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return ::sigismember(&blocked, signal) == 1;
}

}  // namespace

TEST_CASE("signals: those held wait until the end, those of the thread itself do not") {
  const Handler handler(SIGUSR1);
  {
    const SignalsHeld held;
    { const SignalsHeld inner; }
    ::raise(SIGUSR1);
    CHECK(count == 0);
    CHECK_FALSE(blocks(SIGSEGV));
  }
  CHECK(count == 1);
  CHECK_FALSE(blocks(SIGUSR1));
}

TEST_CASE("signals: a worker thread gets none") {
  bool workers_block = false;
  start_worker([&] {
    { const SignalsHeld inner; }
    workers_block = blocks(SIGUSR1) && blocks(SIGALRM) && blocks(SIGINT) && !blocks(SIGSEGV);
  }).join();
  CHECK(workers_block);
  CHECK_FALSE(blocks(SIGUSR1));
}

TEST_CASE("signals: none meets a product of oneDNN" * doctest::test_suite("needs oneDNN")) {
#ifdef RICCI_HAS_ONEDNN
  const Handler handler(SIGUSR1);
  {
    const onednn::OneThread one;
    ::raise(SIGUSR1);
    CHECK(count == 0);
  }
  CHECK(count == 1);
#else
  test::skip("needs oneDNN, which this build has not");
#endif
}

TEST_CASE("signals: a timer while products are made") {
  pthread_attr_t attributes;
  REQUIRE(::pthread_getattr_np(::pthread_self(), &attributes) == 0);
  void* begin = nullptr;
  size_t bytes = 0;
  ::pthread_attr_getstack(&attributes, &begin, &bytes);
  ::pthread_attr_destroy(&attributes);
  stack_begin = static_cast<const char*>(begin);
  stack_end = stack_begin + bytes;
  const int threads = thread_count();
  set_thread_count(1);
  const Handler handler(SIGALRM);
  const itimerval fast{{0, 200}, {0, 200}}, off{};
  ::setitimer(ITIMER_REAL, &fast, nullptr);
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    CHECK(worst_of({1, 300, 320, 600}, dtype, Device::cpu, {[](const Gemm& g) {
      const int begun = count;
      for (int i = 0; i < 10'000 && count < begun + 20; ++i) gemm(g);
    }}) <= 1);
  ::setitimer(ITIMER_REAL, &off, nullptr);
  set_thread_count(threads);
  CHECK(count > 0);
  CHECK(outside == 0);
}
