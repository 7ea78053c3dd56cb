// Files of packed ids through pread and pwrite.
#include "data/token_storage.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "data/hash.h"

namespace ricci {

static_assert(std::endian::native == std::endian::little, "ids and header are written as they lie in memory");

uint64_t TokenHeader::own_hash() const {
  return hash_bytes({reinterpret_cast<const char*>(this), offsetof(TokenHeader, header_hash)});
}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

size_t OpenFile::read(void* target, size_t bytes, int64_t position) const {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t step =
        ::pread(descriptor_, static_cast<char*>(target) + done, bytes - done, position + static_cast<off_t>(done));
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) fail("token file: cannot read at byte {}: {}", {position, std::strerror(errno)});
    if (step == 0) break;
    done += static_cast<size_t>(step);
  }
  return done;
}

void OpenFile::write(const void* source, size_t bytes, int64_t position) const {
  for (size_t done = 0; done < bytes;) {
    const ssize_t step =
        ::pwrite(descriptor_, static_cast<const char*>(source) + done, bytes - done, position + static_cast<off_t>(done));
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) fail("token file: cannot write at byte {}: {}", {position, std::strerror(errno)});
    done += static_cast<size_t>(step);
  }
}

OpenFile open_anonymous_file() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  std::string name = (error ? "/tmp" : folder.string()) + "/ricci-XXXXXX";
  OpenFile file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) fail("token file: cannot create a temporary file {}: {}", {name, std::strerror(errno)});
  ::unlink(name.c_str());
  return file;
}

std::string check_token_file(const OpenFile& file, TokenHeader& header) {
  const TokenHeader sound;
  struct stat status = {};
  if (::fstat(file.descriptor(), &status) != 0) return std::strerror(errno);
  if (file.read(&header, sizeof header, 0) < sizeof header) return "it ends inside its header";
  if (std::memcmp(header.magic, sound.magic, sizeof sound.magic) != 0) return "it is not a token file";
  if (header.version != sound.version) return format_message("it has version {}, not {}", {header.version, sound.version});
  if (header.header_hash != header.own_hash()) return "its header is damaged";
  if (status.st_size != header.file_bytes())
    return format_message("it has {} bytes instead of {}", {status.st_size, header.file_bytes()});
  return "";
}

TokenWriter::TokenWriter(const OpenFile& file, int64_t vocab_size) : file_(file) {
  header_.vocab_size = vocab_size;
  header_.bytes_per_token = vocab_size <= 65536 ? 2 : 4;
}

void TokenWriter::append(std::span<const int64_t> ids) {
  const size_t width = header_.bytes_per_token;
  packed_.resize(ids.size() * width);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= header_.vocab_size)
      fail("token file: id {} at index {} is outside the vocabulary of {}",
           {ids[i], header_.tokens + static_cast<int64_t>(i), header_.vocab_size});
    const auto id = static_cast<uint32_t>(ids[i]);
    std::memcpy(packed_.data() + i * width, &id, width);
  }
  file_.write(packed_.data(), packed_.size(), header_.file_bytes());
  header_.tokens += static_cast<int64_t>(ids.size());
}

TokenHeader TokenWriter::finish(int64_t text_bytes, uint64_t tokenizer_hash, uint64_t text_hash) {
  header_.text_bytes = text_bytes;
  header_.tokenizer_hash = tokenizer_hash;
  header_.text_hash = text_hash;
  header_.header_hash = header_.own_hash();
  file_.write(&header_, sizeof header_, 0);
  return header_;
}

}  // namespace ricci
