// The processes of one run. Rank r of R is this process; a launcher such as mpirun started them, MPI and NCCL carry their messages.
//   Ranks& ranks = Ranks::join();
//   ranks.all_to_all(sums_for, sums_from);               // begins
//   { const Ranks::Testing testing(ranks); ... }         // other work; what was begun moves meanwhile
//   ranks.wait();                                        // has ended: sums_from may be read, sums_for written
// Every rank begins the same exchanges in the same order, from the program's first thread.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace ricci {

// One process alone, as long as no other kind has joined. Nothing is sent, nothing is waited for.
class Ranks {
 public:
  // One process alone; never calls MPI.
  static Ranks& alone();
  // The ranks that a launcher started; alone() where it started one, or where there is none. The first call joins them, the others return
  // the same. Errors: several were started and this program has no MPI; launcher and MPI do not agree on their number.
  static Ranks& join();
  // The last result of join(); alone() before.
  static Ranks& joined();
  // Before the program ends: MPI must be finalized. No rank may be in an exchange.
  static void leave();

  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  int rank() const { return rank_; }
  int count() const { return count_; }
  int local() const { return local_; }                                            // number of this rank on its machine
  const std::string& machine(int rank) const { return machines_[size_t(rank)]; }  // empty where it is alone
  std::string name(int rank) const;                                               // "rank 3 on node07"
  int machine_count() const;
  // The library that carries tensors between devices, with its version: "Open MPI 4.1.4", "NCCL 2.28.9". Loads it. Empty for a process
  // alone.
  virtual std::string carrier(Device device) const;

  // ---- Exchanges. They are begun here and have ended after wait(); until then the tensors are kept alive, none of them may be written,
  // and what arrives may not be read. Tensors of the cpu go through MPI. Tensors of a device go on a stream of their own, which begins
  // when the current one has come here. Error: what the engine reports.

  // Sends the tensors outgoing[q] to rank q and receives incoming[q] from rank q, which must have the same number of them there, each of
  // the same size; without tensors nothing goes that way. There is one list of each per rank; the own ones, outgoing[rank()] and
  // incoming[rank()], are not looked at.
  using Tensors = std::vector<Tensor>;
  virtual void all_to_all(const std::vector<Tensors>& outgoing, const std::vector<Tensors>& incoming);
  // In place: the R shares of a tensor are equally long, share r is rank r's, and then each rank has all. Error: R does not divide its
  // size.
  virtual void all_gather(const Tensor& equal_shares);
  // In place, f64: the sum over all ranks. Exact in any order for numbers that one rank owns, with zeros at the others, and for integers
  // up to 2^53. (-0 arrives as 0.)
  virtual void sum(const Tensor& numbers);
  // In place: rank 0's values.
  virtual void from_first(const Tensor& t);

  // Waits for all that was begun. After `rank_timeout` it asks which ranks are missing, and ends all ranks with the answer: end_all().
  void wait() { wait_but_for(0); }
  // The same, but at most the `last` exchanges may still be on their way.
  virtual void wait_but_for(int64_t last);
  // The same, and then waits until every rank has come here; without a limit. For what may last: rank 0 saves, a text is tokenised.
  virtual void wait_patiently();
  // The same where rank 0 alone does what may last: it waits for the others as wait() does, so that one that is stuck is noticed.
  virtual void wait_for_first() { wait_patiently(); }
  // The part that the others are made of: asks done() until it is true, with naps of 0.1 ms, and after `rank_timeout` which ranks are
  // missing.
  virtual void wait_until(const std::function<bool()>& done);

  // MPI moves only when it is called. While one lives, a thread does that every millisecond.
  class Testing {
   public:
    explicit Testing(Ranks& ranks) : ranks_(ranks) { ranks_.begin_testing(); }
    ~Testing() { ranks_.end_testing(); }
    Testing(const Testing&) = delete;
    Testing& operator=(const Testing&) = delete;

   private:
    Ranks& ranks_;
  };

  // ---- Text and numbers, at once, within `rank_timeout`
  std::string from_first(const std::string& text);             // rank 0's
  std::vector<std::string> from_all(const std::string& text);  // one per rank
  std::vector<double> sum(std::vector<double> numbers);        // as above
  // Seconds in wait() and wait_but_for() so far in which there was nothing else to do, on the host or on the device.
  virtual double waited() const { return waited_; }

  // ---- Where this rank is, for messages: "step 812"
  virtual void at(const std::string& where) { where_ = where; }
  virtual const std::string& where() const { return where_; }
  virtual void set_timeout(double seconds) { timeout_ = seconds; }

  // An error of this rank, as all ranks end with it: "rank 3 on node07: step 812: ...". Before the first step rank 0 speaks for all.
  std::string as_told_here(const std::string& error) const;
  // Prints the line after the program's name and ends all ranks with exit code 1. Where several ranks do it, one line is printed, rank 0's
  // if it is among them.
  [[noreturn]] virtual void end_all(const std::string& line);

 protected:
  virtual void begin_testing() {}
  virtual void end_testing() {}

  int rank_ = 0, count_ = 1, local_ = 0;
  std::vector<std::string> machines_{""};  // one per rank
  double timeout_ = 300, waited_ = 0;      // seconds
  std::string where_;
};

// The library that carries several ranks, linked by programs that may be several. A program without one is one process.
struct Transport {
  std::string (*version)();          // "Open MPI 4.1.4"
  std::unique_ptr<Ranks> (*join)();  // called once, on the first thread
};
bool set_transport(const Transport& transport);  // true; before main()
std::string transport_version();                 // empty where there is none

}  // namespace ricci
