// Formats the messages of gpu_errors.h. Values of cudaError_t are written out: this file is also built without the toolkit's header.
#include "cuda/device/gpu_errors.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace ricci {
namespace {

enum : int {
  kInsufficientDriver = 35,
  kNoDevice = 100,
  kNoKernelImage = 209,
};

// Errors of a running kernel: illegal address 700, time-out 702, assert 710, hardware stack 714, illegal
// instruction 715, misaligned address 716, address space 717, program counter 718, launch failure 719.
bool left_by_a_kernel(int error) { return error == 700 || error == 702 || error == 710 || (error >= 714 && error <= 719); }

std::string version(int number) { return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10); }

// Shows "80-real 90-virtual" as "sm_80, compute_90". An architecture without a suffix means machine code and PTX.
std::string shown(std::string_view architectures) {
  std::string text;
  while (!architectures.empty()) {
    const std::string_view word = architectures.substr(0, architectures.find(' '));
    architectures.remove_prefix(std::min(word.size() + 1, architectures.size()));
    const std::string number(word.substr(0, word.find('-')));
    text += (text.empty() ? "" : ", ") + (word.ends_with("-virtual") ? "compute_" + number : "sm_" + number);
  }
  return text;
}

bool fits(std::string_view word, int major, int minor) {
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc()) return true;
  const std::string_view rest(end, static_cast<size_t>(word.data() + word.size() - end));
  const int gpu = major * 10 + minor;
  if (rest.starts_with('a')) return number == gpu;
  const bool same_major = number / 10 == major && number <= gpu;
  if (rest.starts_with('f') || rest.ends_with("-real")) return same_major;
  return number <= gpu;  // PTX
}

}  // namespace

bool has_code_for(std::string_view architectures, int major, int minor) {
  if (architectures.empty()) return true;
  while (!architectures.empty()) {
    const std::string_view word = architectures.substr(0, architectures.find(' '));
    architectures.remove_prefix(std::min(word.size() + 1, architectures.size()));
    if (!word.empty() && fits(word, major, minor)) return true;
  }
  return false;
}

bool can_use_wgmma(std::string_view architectures, int major, int minor) {
  const bool for_90a = has_code_for(architectures, major, minor) && architectures.find("90a") != std::string_view::npos;
  // False if the binary also contains code for 90: the driver could use it.
  const std::string words = " " + std::string(architectures) + " ";
  return for_90a && major == 9 && minor == 0 && words.find(" 90 ") == std::string::npos && words.find(" 90-real ") == std::string::npos;
}

std::string why_no_gpu(const GpuFound& f) {
  if (f.error == kInsufficientDriver && f.driver == 0) return "no NVIDIA driver found";
  if (f.error == kInsufficientDriver)
    return format_message(
        "the NVIDIA driver is too old: it supports CUDA {}, this binary needs {}", {version(f.driver), version(f.runtime)});
  if (f.error == kNoDevice || (f.error == 0 && f.devices == 0))
    return f.visible.data() ? format_message("no GPU found, with CUDA_VISIBLE_DEVICES='{}'", {f.visible}) : std::string("no GPU found");
  if (f.error) return format_message("{} (CUDA error {})", {f.error_text, f.error});
  if (!has_code_for(f.architectures, f.major, f.minor))
    return format_message("{} has compute capability {}.{}, this binary has code for {}; build it with -DCMAKE_CUDA_ARCHITECTURES={}",
        {f.name, f.major, f.minor, shown(f.architectures), f.major * 10 + f.minor});
  if (!f.memory_pools) return format_message("{} or its driver has no memory pools (cudaMallocAsync)", {f.name});
  return {};
}

std::string gpu_failure(std::string_view what, int error, std::string_view error_text, bool waited) {
  std::string line = format_message("{}: {}", {what, error_text});
  if (error == kNoKernelImage) line += ": this binary has no code for this GPU";
  if (left_by_a_kernel(error) && !waited) line += ", in this or an earlier kernel; RICCI_SYNC=1 names it";
  return line;
}

}  // namespace ricci
