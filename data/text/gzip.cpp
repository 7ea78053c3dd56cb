#include "data/text/gzip.h"

#include <zlib.h>

#include <array>
#include <cstring>

#include "core/error.h"

namespace ricci {
namespace {

constexpr size_t kBlock = 256 * 1024;
constexpr char kMark[] = {'\x1f', '\x8b', '\x08'};

}  // namespace

struct GzipStream::Decoder : z_stream {
  Decoder() : z_stream{} {
    constexpr int gzip = 16;
    if (inflateInit2(this, gzip + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Decoder() { inflateEnd(this); }
  Decoder(const Decoder&) = delete;
};

bool is_gzip(const OpenFile& file) {
  std::array<char, sizeof kMark> start{};
  return file.read(start.data(), start.size(), 0) == start.size() && std::memcmp(start.data(), kMark, sizeof kMark) == 0;
}

GzipStream::GzipStream(const OpenFile& file)
    : file_(file), decoder_(std::make_unique<Decoder>()), packed_(kBlock, '\0'), text_(kBlock, '\0') {}

GzipStream::~GzipStream() = default;

void GzipStream::reject(const char* fault) const { fail("data: cannot read {}: {}", {file_.path(), fault}); }

// Whether there are more bytes of the file to decode.
bool GzipStream::refill() {
  if (decoder_->avail_in > 0) return true;
  const size_t got = file_.read(packed_.data(), packed_.size(), read_);
  read_ += static_cast<int64_t>(got);
  decoder_->next_in = reinterpret_cast<Bytef*>(packed_.data());
  decoder_->avail_in = static_cast<uInt>(got);
  return got > 0;
}

std::string_view GzipStream::next() {
  decoder_->next_out = reinterpret_cast<Bytef*>(text_.data());
  decoder_->avail_out = static_cast<uInt>(text_.size());
  while (decoder_->avail_out == text_.size()) {
    const bool more = refill();
    if (!inside_ && !more) return {};
    if (!more) reject("cut short");
    if (!inside_) inflateReset(decoder_.get());
    const bool starts = !inside_;
    const int status = inflate(decoder_.get(), Z_NO_FLUSH);
    const bool is_sound = status == Z_OK || status == Z_STREAM_END;
    if (!is_sound && starts) reject("bytes that are not gzip follow its end");
    if (!is_sound) reject(decoder_->msg ? decoder_->msg : "damaged");
    inside_ = status != Z_STREAM_END;
  }
  return std::string_view(text_).substr(0, text_.size() - decoder_->avail_out);
}

}  // namespace ricci
