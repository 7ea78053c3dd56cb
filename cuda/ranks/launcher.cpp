#include "cuda/ranks/launcher.h"

#include <algorithm>
#include <cstdlib>

namespace ricci {
namespace {

struct Variables {
  const char *count, *rank, *name;
};
// The launcher is the first whose count is set, or whose rank is set where it gives no count.
constexpr Variables kLaunchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun"},  // Open MPI
    {"PMI_SIZE", "PMI_RANK", "mpiexec"},                         // MPICH, Intel MPI, srun --mpi=pmi2
    {nullptr, "PMIX_RANK", "mpirun"},                            // any launcher with PMIx
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"},
};

int number_in(const char* variable, int otherwise) {
  const char* const text = variable ? std::getenv(variable) : nullptr;
  return text ? std::atoi(text) : otherwise;
}

}  // namespace

Launcher find_launcher() {
  const char* const slurm_tasks = "SLURM_STEP_NUM_TASKS";
  for (const Variables& each : kLaunchers) {
    if (!std::getenv(each.count ? each.count : each.rank)) continue;
    Launcher found{.name = each.name, .rank = std::max(0, number_in(each.rank, 0))};
    const bool by_mpirun = std::string(each.name) == "mpirun" && each.count;
    if (std::getenv(slurm_tasks) && !by_mpirun) found.name = "srun";
    const int count = each.count ? number_in(each.count, 1) : number_in(slurm_tasks, 0);
    found.counts = count > 0;
    found.count = std::max(count, found.rank + 1);
    return found;
  }
  return {};
}

void forget_launcher() {
  for (const Variables& each : kLaunchers) {
    if (each.count) ::unsetenv(each.count);
    ::unsetenv(each.rank);
  }
}

}  // namespace ricci
