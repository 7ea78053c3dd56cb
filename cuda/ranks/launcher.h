// The launcher of this process, and the number of processes. Launchers write both to the environment.
#pragma once
#include <string>

namespace ricci {

struct Launcher {
  std::string name;    // "mpirun", "srun", "mpiexec"; empty without one
  int rank = 0;        // this process's number among those started
  int count = 1;       // the least number that can have been started
  bool counts = true;  // false if `count` is only concluded from the rank
};
Launcher find_launcher();

// A process that is one alone: what it starts does not take itself for a rank.
void forget_launcher();

}  // namespace ricci
