// Threads beside the first one of a program.
#pragma once
#include <functional>
#include <thread>

namespace ricci {

// A worker thread: SIGINT, SIGTERM and SIGHUP are blocked, so that only the main thread handles them, on the stack that it has
// for them. Error (a std::exception): the system has no thread left for this process.
std::thread start_worker(const std::function<void()>& body);

}  // namespace ricci
