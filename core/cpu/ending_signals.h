// The signals that ask a program to end. mpirun passes SIGUSR1 on to all ranks and waits for them; after the others it kills them a second
// later.
#pragma once
#include <array>
#include <csignal>

namespace ricci {

inline constexpr std::array kEndingSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

}  // namespace ricci
