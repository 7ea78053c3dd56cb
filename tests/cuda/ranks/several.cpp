// One of the processes that ranks.sh starts with mpirun: ricci-several CASE.
#include <errno.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "apps/terminal/cli.h"
#include "apps/terminal/streams.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "cuda/device/device.h"
#include "cuda/ranks/ranks.h"
#include "cuda/verbs/arithmetic.h"

using namespace ricci;

namespace {

void require_equal(double found, double expected, const char* name) {
  if (found != expected) fail("{}: expected {}, got {}", {name, expected, found});
}

// Element i of rank r is r + i modulo 5: exact in every dtype.
void sum_numbers(Ranks& ranks, int64_t size, Dtype dtype) {
  std::vector<double> terms(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) terms[static_cast<size_t>(i)] = ranks.rank() + static_cast<double>(i % 5);
  const Tensor t = convert(tensor_of(terms, {size}), dtype);
  ranks.sum({t});
  const Tensor sums = convert(t, Dtype::f64);
  const int count = ranks.count();
  for (int64_t i = 0; i < size; ++i)
    require_equal(sums.data<double>()[i], count * (count - 1) / 2. + count * static_cast<double>(i % 5), name_of(dtype));
}

// The bits do not depend on the rank or the repetition.
void sum_twice(Ranks& ranks, Dtype dtype) {
  std::string before;
  for (int repetition = 0; repetition < 2; ++repetition) {
    const Tensor t = randn({1'234'567}, 1 + static_cast<uint64_t>(ranks.rank()), dtype, Device::cpu);
    ranks.sum({t});
    const std::string hash = format_message("{:016x}", {xxh64({static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes())})});
    for (const std::string& other : ranks.from_all(hash))
      if (other != hash) fail("the bits of a sum of {} differ on two ranks", {name_of(dtype)});
    if (repetition > 0 && hash != before) fail("the bits of a sum of {} differ at its repetition", {name_of(dtype)});
    before = hash;
  }
}

void sum_tensors(Ranks& ranks) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
    const int64_t piece = (int64_t{4} << 20) / size_of(dtype);
    for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{1001}, piece, 2 * piece + 1}) sum_numbers(ranks, size, dtype);
  }
  // Rank 0 and rank 1: 257 and 259 are halfway between two numbers of bf16. The even one is used.
  std::vector<double> terms(2, ranks.rank() == 1 ? 1 : 0);
  if (ranks.rank() == 0) terms = {256, 258};
  const Tensor t = convert(tensor_of(terms, {2}), Dtype::bf16);
  ranks.sum({t});
  require_equal(item(t, 0), 256, "256 + 1");
  require_equal(item(t, 1), 260, "258 + 1");
}

void send_values(Ranks& ranks) {
  for (const int64_t size : {int64_t{1}, int64_t{321}, (int64_t{1} << 20) + 3}) {
    const Tensor t = zeros({size}, Dtype::f64, Device::cpu);
    for (int64_t i = 0; i < size; ++i) t.data<double>()[i] = ranks.rank() == 0 ? static_cast<double>(i) : -1;
    ranks.from_first(t);
    for (int64_t i = 0; i < size; ++i) require_equal(item(t, i), static_cast<double>(i), "rank 0's value");
  }
  const auto text_of = [](int rank) { return std::string(static_cast<size_t>(13 * rank), static_cast<char>('a' + rank)); };
  for (const std::string& text : {std::string(), std::string("seven b"), std::string(5'000'001, 'x')})
    if (ranks.from_first(ranks.rank() == 0 ? text : "another") != text) fail("from_first: not rank 0's text of {} bytes", {text.size()});
  const std::vector<std::string> all = ranks.from_all(text_of(ranks.rank()));
  require_equal(static_cast<double>(all.size()), ranks.count(), "texts");
  for (int q = 0; q < ranks.count(); ++q)
    if (all[static_cast<size_t>(q)] != text_of(q)) fail("from_all: not the text of rank {}", {q});
}

void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Stops this process while it is in a call.
void stop_later(double seconds) {
  std::thread([seconds] {
    nap(seconds);
    std::raise(SIGSTOP);
  }).detach();
}

void meet(Ranks& ranks) { ranks.sum_numbers(std::vector<double>{1}); }

const std::map<std::string, std::function<void(Ranks&)>> kCases = {
    {"exchange",
        [](Ranks& ranks) {
          sum_tensors(ranks);
          for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) sum_twice(ranks, dtype);
          send_values(ranks);
        }},
    {"fails",  // on one rank only, in a step
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
    {"two_stop",
        [](Ranks& ranks) {
          if (ranks.rank() % 3) std::raise(SIGSTOP);
          ranks.from_all("here");
        }},
    {"teller_stops",  // the rank that should print the line
        [](Ranks& ranks) {
          if (ranks.rank() == 2) std::raise(SIGSTOP);
          if (ranks.rank() == 0) stop_later(3);
          meet(ranks);
        }},
    {"late",  // later than the timeout of the others, but before they end, five seconds after it
        [](Ranks& ranks) {
          ranks.set_timeout(0.01);
          if (ranks.rank() == 0) nap(0.2);
          for (int i = 0; i < 100; ++i) meet(ranks);
          if (ranks.rank() == 0) nap(6);
          ranks.barrier();
        }},
    {"patient",
        [](Ranks& ranks) {
          if (ranks.rank() == 0) nap(8);
          ranks.barrier();
          if (ranks.rank() == 0) nap(8);
          if (ranks.from_first(ranks.rank() == 0 ? "read" : "") != "read") fail("from_first: not rank 0's text");
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
            const double asked = apps::Interrupt::requested();
            if (step == 5 && ranks.rank() == 0) std::puts("five steps");
            if (step == 5) std::fflush(stdout);
            nap(0.01);
            if (ranks.sum_numbers(std::vector<double>{asked})[0] == 0) continue;
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
      argc, argv, {program_invocation_short_name, "One of the processes of a test.", true, true},
      [&](CLI::App& app) { app.add_option("case", name, "the case to run")->required(); }, [&] { return run_case(name); });
}
