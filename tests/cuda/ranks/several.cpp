// One of several processes, started by ranks.sh through mpirun: ricci-several CASE.
#include <errno.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "apps/terminal/cli.h"
#include "apps/terminal/signals.h"
#include "core/cpu/clock.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/ranks/ranks.h"

using namespace ricci;

namespace {

void require_equal(double found, double expected, const char* what) {
  if (found != expected) fail("{}: expected {}, got {}", {what, expected, found});
}

// What rank `from` says to rank `to` in a round: as many elements as the two numbers say, none where they are too far apart.
double word(int from, int to, int round) { return from + 0.25 * to + 16.0 * round; }
int64_t words_between(int from, int to) { return std::abs(from - to) > 2 ? 0 : 1 + 70'000 * from + to; }
Tensor filled(int64_t size, double value, Device device) {
  return tensor_of(std::vector<float>(static_cast<size_t>(size), static_cast<float>(value)), {size}, device);
}

// The second half of what is said goes as a tensor of its own.
std::vector<Tensor> halves(const Tensor& t) {
  const int64_t half = t.size() / 2;
  return {t.rows(0, half), t.rows(half, t.size() - half)};
}

struct Exchanged {
  std::vector<Ranks::Tensors> to, from;
  void begin(Ranks& ranks, int round, Device device) {
    const int r = ranks.rank(), count = ranks.count();
    to.resize(static_cast<size_t>(count));
    from.resize(static_cast<size_t>(count));
    for (int q = 0; q < count; ++q) {
      if (q != r && words_between(r, q)) to[static_cast<size_t>(q)] = halves(filled(words_between(r, q), word(r, q, round), device));
      if (q != r && words_between(q, r)) from[static_cast<size_t>(q)] = halves(filled(words_between(q, r), NAN, device));
    }
    ranks.all_to_all(to, from);
  }
  void check(const Ranks& ranks, int round) const {
    for (int q = 0; q < ranks.count(); ++q)
      for (const Tensor& t : from[static_cast<size_t>(q)]) {
        if (t.size() == 0) continue;
        require_equal(item(t, 0), word(q, ranks.rank(), round), "the first element of all_to_all");
        require_equal(item(t, t.size() - 1), word(q, ranks.rank(), round), "the last element of all_to_all");
      }
  }
};

void exchange_tensors(Ranks& ranks, Device device) {
  constexpr int kRounds = 3;
  std::vector<Exchanged> rounds(kRounds);
  const int r = ranks.rank(), count = ranks.count();
  const auto numbers = [&](int round) {  // one owner each
    std::vector<double> own(static_cast<size_t>(count));
    own[static_cast<size_t>(r)] = std::sqrt(r + 2.0) + round;
    return tensor_of(own, {count}, device);
  };
  for (int round = 0; round < kRounds; ++round) {
    const Tensor shares = filled(count * 1000, NAN, device), first = filled(321, r == 0 ? round + 0.5 : NAN, device), sums = numbers(round);
    copy(shares.rows(1000 * r, 1000), filled(1000, word(r, r, round), device));
    {
      const Ranks::Testing testing(ranks);
      rounds[static_cast<size_t>(round)].begin(ranks, round, device);
      ranks.all_gather(shares);
      ranks.sum(sums);
      ranks.from_first(first);
    }
    ranks.wait();
    rounds[static_cast<size_t>(round)].check(ranks, round);
    for (int q = 0; q < count; ++q) {
      require_equal(item(shares, 1000 * q), word(q, q, round), "the first element of a share");
      require_equal(item(shares, 1000 * q + 999), word(q, q, round), "the last element of a share");
      require_equal(item(sums, q), std::sqrt(q + 2.0) + round, "a sum over zeros");
    }
    require_equal(item(first, 320), round + 0.5, "rank 0's value");
  }
}

void exchange_texts(Ranks& ranks) {
  const auto text_of = [](int rank) { return std::string(static_cast<size_t>(13 * rank), static_cast<char>('a' + rank)); };
  for (const std::string& text : {std::string(), std::string("seven b"), std::string(100'001, 'x')})
    if (ranks.from_first(ranks.rank() == 0 ? text : "another") != text) fail("from_first: not rank 0's text of {} bytes", {text.size()});
  const std::vector<std::string> all = ranks.from_all(text_of(ranks.rank()));
  require_equal(static_cast<double>(all.size()), ranks.count(), "texts");
  for (int q = 0; q < ranks.count(); ++q)
    if (all[static_cast<size_t>(q)] != text_of(q)) fail("from_all: not the text of rank {}", {q});
}

void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

void meet(Ranks& ranks) {
  const Tensor one = zeros({1}, Dtype::f64, Device::cpu);
  ranks.sum(one);
  ranks.wait();
}

const std::map<std::string, std::function<void(Ranks&)>> kCases = {
    {"exchange",
        [](Ranks& ranks) {
          exchange_tensors(ranks, Device::cpu);
          exchange_texts(ranks);
        }},
    {"emulated",
        [](Ranks& ranks) {
          exchange_tensors(ranks, Device::cuda_emulated);
          exchange_tensors(ranks, Device::cpu);
          exchange_tensors(ranks, Device::cuda_emulated);
        }},
    {"forgotten",  // what was exchanged is read without a wait
        [](Ranks& ranks) {
          const Tensor t = zeros({1}, Dtype::f64, Device::cuda_emulated);
          copy(t, tensor_of(std::vector<double>{1}, {1}));
          ranks.sum(t);
          require_equal(item(t), ranks.count(), "a sum that was not waited for");
          ranks.wait();
        }},
    {"fails",  // on one rank alone, in a step
        [](Ranks& ranks) {
          ranks.at("step 812");
          if (ranks.rank() == 1) fail("no space left");
          meet(ranks);
        }},
    {"all_fail", [](Ranks&) { fail("an error that all ranks meet"); }},
    {"stops",
        [](Ranks& ranks) {
          ranks.at("step 812");
          if (ranks.rank() == ranks.count() - 1) std::raise(SIGSTOP);
          meet(ranks);
        }},
    {"first_stops",
        [](Ranks& ranks) {
          if (ranks.rank() == 0) std::raise(SIGSTOP);
          meet(ranks);
        }},
    {"late",  // later than the others ask, but there before they end, which they do five seconds after it
        [](Ranks& ranks) {
          ranks.set_timeout(0.01);
          if (ranks.rank() == 0) nap(0.2);
          for (int i = 0; i < 100; ++i) meet(ranks);
        }},
    {"patient",
        [](Ranks& ranks) {
          if (ranks.rank() == 0) nap(8);
          ranks.wait_patiently();
          meet(ranks);
          if (ranks.waited() > 2) fail("a patient wait counted: {} s", {ranks.waited()});
        }},
    {"all_wait",  // rank 1 waits for what nobody sends
        [](Ranks& ranks) {
          ranks.at(ranks.rank() == 1 ? "step 811" : "step 812");
          std::vector<Ranks::Tensors> none(static_cast<size_t>(ranks.count())), from = none;
          if (ranks.rank() == 1) from[0] = {filled(1, 0, Device::cpu)};
          ranks.all_to_all(none, from);
          if (ranks.rank() == 1) ranks.wait();
          meet(ranks);
        }},
    {"exits",
        [](Ranks& ranks) {
          if (ranks.rank() == 1) std::_Exit(0);
          meet(ranks);
        }},
    {"asked",  // all leave at the same step
        [](Ranks& ranks) {
          const apps::Interrupt interrupt;
          for (int step = 0; step < 2000; ++step) {
            const Tensor asked = zeros({1}, Dtype::f64, Device::cpu);
            *asked.data<double>() = apps::Interrupt::requested();
            if (step == 5 && ranks.rank() == 0) std::puts("five steps");
            if (step == 5) std::fflush(stdout);
            nap(0.01);
            ranks.sum(asked);
            ranks.wait();
            if (item(asked) == 0) continue;
            const std::vector<std::string> steps = ranks.from_all(std::to_string(step));
            if (steps != std::vector<std::string>(steps.size(), steps[0])) fail("ranks left after different steps");
            return;
          }
          fail("nobody asked");
        }},
};

int run_case(const std::string& name) {
  Ranks& ranks = Ranks::join();
  ranks.set_timeout(1);
  kCases.at(name)(ranks);
  if (ranks.rank() == 0)
    std::puts(format_message("{} ranks on {} machine, {}", {ranks.count(), ranks.machine_count(), ranks.carrier(Device::cpu)}).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string name;
  return apps::run_app(
      argc, argv, {program_invocation_short_name, "One of several processes.", true, true},
      [&](CLI::App& app) { app.add_option("case", name, "what to do")->required(); }, [&] { return run_case(name); });
}
