// Programs as processes: their parts before and after main, and ranks.
#include <cxxabi.h>
#include <ricci_commit.h>  // made by apps/commit.cmake

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <typeinfo>
#include <utility>

#include "apps/terminal/cli.h"
#include "core/cpu/isa.h"
#include "core/error.h"
#include "cuda/ranks/launcher.h"
#include "cuda/ranks/ranks.h"

namespace ricci::apps {
namespace {

#ifdef __clang__
constexpr const char* kCompiler = "clang++ " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

// Memory can run out where no exception may leave: in a destructor, before main, or while the line about it is made. Only the type of the
// exception is read, because throwing it again would need memory.
const std::terminate_handler otherwise = std::set_terminate([] {
  if (const std::type_info* const thrown = abi::__cxa_current_exception_type(); thrown && *thrown == typeid(std::bad_alloc)) {
    std::fprintf(stderr, "%s: out of memory\n", program_invocation_short_name);
    std::_Exit(1);
  }
  otherwise();
});

int report_exception(const AppText& text, const std::string& message) {
  Ranks& ranks = Ranks::joined();
  if (ranks.count() > 1) ranks.end_all(printable(ranks.as_told_here(message)));
  return report(text, message, 1);
}

// Error: a launcher started several processes, which would all do the same.
void run_as_one_process() {
  const Launcher launcher = find_launcher();
  if (launcher.count > 1) fail("runs as one process, but {} started {}", {launcher.name, launcher.count});
}

std::string version_of(const AppText& text) {
  const std::string library = transport.version ? transport.version() : "";
  const std::pair<const char*, std::string> rows[] = {{"commit   ", RICCI_COMMIT}, {"compiler ", kCompiler},
      {"CUDA     ", RICCI_CUDA_VERSION}, {"MPI      ", library.empty() ? RICCI_MPI_VERSION : one_line(library)},
      {"CPU      ", name_of(cpu_isa())}};
  std::string lines = std::string(text.name) + " " RICCI_VERSION;
  for (const auto& [name, value] : rows) lines += "\n" + (name + value);
  return lines;
}

}  // namespace

std::string build_info() { return std::string("ricci " RICCI_VERSION ", commit " RICCI_COMMIT ", ") + kCompiler; }

int run_app(
    int argc, const char* const* argv, const AppText& text, const std::function<void(CLI::App&)>& setup, const std::function<int()>& main) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond `ulimit -f` is an error of the write that meets it, not the end
  try {
    CLI::App app(text.summary, text.name);
    app.set_version_flag(
        "--version", [&] { return version_of(text); }, "Print the version and exit");
    if (const auto ended = parse_arguments(app, argc, argv, text, setup)) return *ended;
    if (!text.may_be_several) run_as_one_process();
    const int exit_code = main();
    Ranks::leave();
    return text.prints_result ? after_output(text, exit_code) : exit_code;
  } catch (const std::exception& error) {
    const bool asks_too_much = dynamic_cast<const std::bad_alloc*>(&error) || dynamic_cast<const std::length_error*>(&error);
    return report_exception(text, asks_too_much ? "out of memory" : error.what());
  }
}

}  // namespace ricci::apps
