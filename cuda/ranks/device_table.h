// The functions that carry tensors between devices: NCCL's, with their meaning there. For cuda it is NCCL (cuda/toolkit/nccl.cpp), for
// cuda_emulated a table that copies to the CPU, lets other ranks carry and copies back (emulated_table.cpp).
#pragma once
#include <cstddef>
#include <functional>
#include <string>

#include "cuda/ranks/ranks.h"

namespace ricci {

// Every function returns 0, kInProgress, or the number of an error. Work goes to the current stream of the calling thread. Lengths are in
// bytes; the ranks' communicator belongs to the table.
struct DeviceTable {
  static constexpr int kInProgress = 7;  // the call goes on; state() returns its result later

  std::string version;                                                  // "NCCL 2.28.9"
  std::function<int(std::string& id)> make_id;                          // on rank 0: what the others need to find it
  std::function<int(const std::string& id, int rank, int count)> join;  // on all ranks
  std::function<int()> begin_group, end_group;                          // what is sent and received between them goes together
  std::function<int(const void* data, size_t bytes, int receiver)> send;
  std::function<int(void* data, size_t bytes, int sender)> receive;
  std::function<int(void* shares, size_t bytes_of_one, int rank)> all_gather;  // in place
  std::function<int(double* numbers, size_t count)> sum;                       // in place
  std::function<int(void* data, size_t bytes)> from_first;                     // in place
  std::function<int(int& state)> state;                                        // the communicator's state, also of what runs now
  std::function<int()> abort;                                                  // ends the communicator, and what runs on it
  std::function<std::string(int error)> text;                                  // "unhandled system error"
};

DeviceTable emulated_table(Ranks& carrier);
// Built where the toolkit is. Errors: there is no NCCL, or one older than 2.18.
DeviceTable nccl_table();

}  // namespace ricci
