// The launcher of this process, such as mpirun, and the number of processes, as launchers write both to the environment.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <string>

namespace ricci {

struct Launcher {
  std::string name;    // "mpirun", "srun", "mpiexec"; empty without one
  int rank = 0;        // this process's number among those started
  int count = 1;       // the least number that can have been started
  bool counts = true;  // false if `count` is only concluded from the rank
};

// The first variable that is set decides. mpirun is asked before Slurm, because inside a job its processes inherit the variables of Slurm.
inline Launcher find_launcher() {
  const auto number_in = [](const char* variable) {
    const char* const text = std::getenv(variable);
    return text ? std::atoi(text) : -1;
  };
  const int tasks = number_in("SLURM_STEP_NUM_TASKS"), open_mpi = number_in("OMPI_COMM_WORLD_SIZE"), mpich = number_in("PMI_SIZE");
  const auto found = [&](const char* name, const char* rank_variable, int count) {
    const int rank = std::max(0, number_in(rank_variable));
    return Launcher{.name = name, .rank = rank, .count = std::max(count, rank + 1), .counts = count > 0};
  };
  if (open_mpi >= 0) return found("mpirun", "OMPI_COMM_WORLD_RANK", open_mpi);
  if (mpich >= 0) return found(tasks >= 0 ? "srun" : "mpiexec", "PMI_RANK", mpich);
  if (number_in("PMIX_RANK") >= 0) return found(tasks >= 0 ? "srun" : "mpirun", "PMIX_RANK", tasks);
  return tasks >= 0 ? found("srun", "SLURM_PROCID", tasks) : Launcher{};
}

}  // namespace ricci
