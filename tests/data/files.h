// Utilities for the tests of data/: a scratch folder, compressed files, real corpora, error texts, resident memory.
#pragma once
#include <archive.h>
#include <archive_entry.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "core/cpu/parallel.h"
#include "core/error.h"

namespace test_data {

// A folder that is removed with its contents.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ricci-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) ricci::fail("cannot create {}", {name});
    path_ = std::filesystem::canonical(name);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

  std::string write(const std::string& name, std::string_view text) const {
    const std::string path = *this / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

 private:
  std::filesystem::path path_;
};

// An environment variable for the duration of a scope; nullptr removes it.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    const char* old = ::getenv(name);
    had_ = old != nullptr;
    if (had_) old_ = old;
    set(value);
  }
  ~ScopedVariable() { set(had_ ? old_.c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;

 private:
  void set(const char* value) { value ? ::setenv(name_, value, 1) : ::unsetenv(name_); }
  const char* name_;
  bool had_;
  std::string old_;
};

// The thread count for the duration of a scope.
class Threads {
 public:
  explicit Threads(int count) : before_(ricci::thread_count()) { ricci::set_thread_count(count); }
  ~Threads() { ricci::set_thread_count(before_); }
  Threads(const Threads&) = delete;

 private:
  int before_;
};

// Limits the file size of this process, as on a full disk; the system's reason is "File too large".
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    old_handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_ = {};
  void (*old_handler_)(int);
};

inline std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Writes the text compressed by a libarchive filter such as ARCHIVE_FILTER_ZSTD.
inline std::string write_compressed(const ScratchFolder& folder, const std::string& name, std::string_view text, int filter) {
  const std::string path = folder / name;
  archive* out = archive_write_new();
  archive_write_set_format_raw(out);
  archive_write_add_filter(out, filter);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  const bool written = archive_write_open_filename(out, path.c_str()) == ARCHIVE_OK && archive_write_header(out, entry) == ARCHIVE_OK &&
                       archive_write_data(out, text.data(), text.size()) == static_cast<la_ssize_t>(text.size()) &&
                       archive_write_close(out) == ARCHIVE_OK;
  const std::string problem = written ? "" : archive_error_string(out);
  archive_entry_free(entry);
  archive_write_free(out);
  if (!written) ricci::fail("cannot write {}: {}", {path, problem});
  return path;
}

// The text of the error that f throws, or a note that it throws none.
template <class F> std::string error_of(const F& f) {
  try {
    f();
  } catch (const ricci::Error& error) {
    return error.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// The path of a file below $RICCI_DATA, or empty if it does not exist.
inline std::string corpus(const std::string& name) {
  const char* folder = ::getenv("RICCI_DATA");
  const std::string path = folder ? std::string(folder) + "/" + name : "";
  return folder && std::filesystem::exists(path) ? path : "";
}

// Sanitizers hold freed memory back, less than any large text here, and shadow bytes for each used byte.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int64_t kSanitizerBytes = 40'000'000, kSanitizerFactor = 5;
#else
inline constexpr int64_t kSanitizerBytes = 0, kSanitizerFactor = 1;
#endif

// The resident memory of this process in bytes.
inline int64_t resident_bytes() {
  int64_t pages_mapped = 0, pages_resident = 0;
  std::ifstream("/proc/self/statm") >> pages_mapped >> pages_resident;
  return pages_resident * ::sysconf(_SC_PAGESIZE);
}

// Deterministic values for contents, not for statistics.
class Sequence {
 public:
  explicit Sequence(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % n;
  }

 private:
  uint64_t state_;
};

// Words and line ends with characters of 1 to 4 bytes.
inline std::string mixed_text(size_t characters, uint64_t seed) {
  static const char* const kinds[] = {"a", "b", "z", " ", "\n", "é", "ß", "€", "語", "𝄞", "😀"};
  Sequence sequence(seed);
  std::string text;
  for (size_t i = 0; i < characters; ++i) text += kinds[sequence.below(std::size(kinds))];
  return text;
}

// A tar archive of files with these names and texts.
inline std::string write_tar(
    const ScratchFolder& folder, const std::string& name, const std::vector<std::pair<std::string, std::string>>& files, int filter) {
  const std::string path = folder / name;
  archive* out = archive_write_new();
  archive_write_set_format_pax_restricted(out);
  archive_write_add_filter(out, filter);
  REQUIRE(archive_write_open_filename(out, path.c_str()) == ARCHIVE_OK);
  for (const auto& [file, text] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, file.c_str());
    archive_entry_set_filetype(entry, file.ends_with('/') ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<la_int64_t>(text.size()));
    if (file.ends_with(".sparse")) archive_entry_sparse_add_entry(entry, 1024, 512);
    REQUIRE(archive_write_header(out, entry) == ARCHIVE_OK);
    archive_write_data(out, text.data(), text.size());
    archive_entry_free(entry);
  }
  archive_write_free(out);
  return path;
}

}  // namespace test_data
