// The functions that the stubs of cuBLASLt and NCCL call. These include NVIDIA's headers, so they are separate libraries.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

extern "C" {
int ricci_stub_status(const char* call);                          // 0, or the status of this call's failure
int ricci_stub_wrong(int status, const char* what);               // returns the status; the words are the fault
bool ricci_stub_holds(const void* data, size_t bytes);            // all of it is in one live allocation
uint64_t ricci_stub_allocation(const void* data);                 // a different number for each allocation
bool ricci_stub_queue(void* stream, std::function<void()> work);  // false: the stream cannot be used now
void ricci_stub_ran();                                            // a product runs
}
