// The part of the stub that the stubs of cuBLASLt and NCCL call. They are libraries of their own, which include NVIDIA's headers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

extern "C" {
int ricci_stub_status(const char* call);                          // 0, or that with which this call has to fail
int ricci_stub_wrong(int status, const char* what);               // returns the status; the words are the complaint
bool ricci_stub_holds(const void* data, size_t bytes);            // all of it lies in one live allocation
uint64_t ricci_stub_allocation(const void* data);                 // a number of its own for each allocation
bool ricci_stub_queue(void* stream, std::function<void()> work);  // false: not a stream that may be used now
void ricci_stub_ran(int algorithm);                               // an algorithm of that number runs: the clock of events goes on
}
