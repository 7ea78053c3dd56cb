// Packing ids, and reading parts of a file at any position.
#include "data/tokens/token_storage.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "core/error.h"
#include "core/files/hash.h"

namespace ricci {

static_assert(std::endian::native == std::endian::little, "ids and trailer are written as they lie in memory");

uint64_t TokenTrailer::hash() const {
  return hash_bytes({reinterpret_cast<const char*>(this), offsetof(TokenTrailer, own_hash)});
}

OpenFile::OpenFile(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int64_t OpenFile::size() const {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) fail("token file: cannot read its size: {}", {std::strerror(errno)});
  return status.st_size;
}

size_t OpenFile::read(void* target, size_t bytes, int64_t position) const {
  size_t done = 0;
  while (done < bytes) {
    char* const next = static_cast<char*>(target) + done;
    const ssize_t step = ::pread(descriptor_, next, bytes - done, position + static_cast<off_t>(done));
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) fail("token file: cannot read at byte {}: {}", {position, std::strerror(errno)});
    if (step == 0) break;
    done += static_cast<size_t>(step);
  }
  return done;
}

std::string check_token_file(const OpenFile& file, TokenTrailer& trailer) {
  const TokenTrailer sound;
  const int64_t size = file.size(), position = size - static_cast<int64_t>(sizeof trailer);
  if (position < 0) return format_message("it has only {} bytes", {size});
  if (file.read(&trailer, sizeof trailer, position) < sizeof trailer) return "it was cut while it was checked";
  if (std::memcmp(trailer.magic, sound.magic, sizeof sound.magic) != 0)
    return "it was cut or continued, or is not a token file";
  if (trailer.version != sound.version)
    return format_message("it has version {}, not {}", {trailer.version, sound.version});
  if (trailer.own_hash != trailer.hash()) return "its description is damaged";
  if (size != trailer.file_bytes())
    return format_message("it has {} bytes instead of {}", {size, trailer.file_bytes()});
  return "";
}

TokenWriter::TokenWriter(FileWriter& file, int64_t vocab_size) : file_(file) {
  trailer_.vocab_size = vocab_size;
  trailer_.tokens_hash = hash_bytes("");
  trailer_.bytes_per_token = vocab_size <= 65536 ? 2 : 4;
}

void TokenWriter::append(std::span<const int64_t> ids) {
  const size_t width = trailer_.bytes_per_token;
  packed_.resize(ids.size() * width);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= trailer_.vocab_size)
      fail("token file: id {} at index {} is outside the vocabulary of {}",
           {ids[i], trailer_.tokens + static_cast<int64_t>(i), trailer_.vocab_size});
    const auto id = static_cast<uint32_t>(ids[i]);
    std::memcpy(packed_.data() + i * width, &id, width);
  }
  file_.write(packed_);
  trailer_.tokens_hash = hash_bytes(packed_, trailer_.tokens_hash);
  trailer_.tokens += static_cast<int64_t>(ids.size());
}

void TokenWriter::finish(int64_t text_bytes, uint64_t tokenizer_hash, uint64_t text_hash) {
  trailer_.text_bytes = text_bytes;
  trailer_.tokenizer_hash = tokenizer_hash;
  trailer_.text_hash = text_hash;
  trailer_.own_hash = trailer_.hash();
  file_.write({reinterpret_cast<const char*>(&trailer_), sizeof trailer_});
}

}  // namespace ricci
