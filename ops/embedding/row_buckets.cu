// Sorts rows by their id. The CPU counts the ids, adds up the counts and sorts the rows. The GPU runs a stable radix sort of words (id <<
// 32 | row), lowest byte first. Atomic counters would order equal ids differently each time. For each byte, a block counts the digits of
// its tile of words, one block adds the counts over tiles and digits, and each block places its words after all words with smaller digits
// and all earlier words with equal digits.
//   bytes   24 N per byte of the largest id for N rows: words are read twice and written once
//   floor   N = 65,536 with two bytes on an H200: 3 MB, in less time than the launches
#include "ops/embedding/row_buckets.h"

#include <utility>

#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/elements.h"

namespace ricci {
namespace row_buckets_kernels {

using Word = uint64_t;
constexpr int kTile = 512, kWarps = kTile / 32, kDigits = 256;

struct MakeWords {
  const int64_t* ids;
  int64_t vocabulary;
  Word* words;
  HD void operator()(int64_t r) const {
    const bool known = ids[r] >= 0 && ids[r] < vocabulary;
    words[r] = static_cast<Word>(known ? ids[r] : vocabulary) << 32 | static_cast<Word>(r);
  }
};

// Counts the digits of a tile: of_warp[w][digit] becomes the number of words of warp w with that digit.
struct Digit {
  unsigned value, before;  // this thread's digit; the number of lanes before it with the same digit
};
__device__ inline Digit count_in_warp(const Word* words, int64_t i, int64_t n, int shift, unsigned (&of_warp)[kWarps][kDigits]) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (unsigned k = threadIdx.x; k < kWarps * kDigits; k += kTile) of_warp[k / kDigits][k % kDigits] = 0;
  __syncthreads();
  const unsigned digit = i < n ? static_cast<unsigned>(words[i] >> shift) % kDigits : kDigits;  // kDigits: no word
  const unsigned same = __match_any_sync(~0u, digit), before = static_cast<unsigned>(__popc(same & ((1u << lane) - 1)));
  if (before == 0 && i < n) of_warp[warp][digit] = static_cast<unsigned>(__popc(same));
  __syncthreads();
  return {digit, before};
}

struct CountDigits {
  static constexpr int kThreads = kTile;
  const Word* words;
  int64_t n;
  int shift;
  int64_t* count;  // [tile][digit]
  __device__ void operator()() const {
    SHARED(unsigned, of_warp, [kWarps][kDigits]);
    count_in_warp(words, int64_t{blockIdx.x} * kTile + threadIdx.x, n, shift, of_warp);
    if (threadIdx.x < kDigits) {
      int64_t total = 0;
      for (int w = 0; w < kWarps; ++w) total += of_warp[w][threadIdx.x];
      count[int64_t{blockIdx.x} * kDigits + threadIdx.x] = total;
    }
  }
};

// Replaces count[tile][digit] by the position of the tile's first word with that digit: after all smaller digits, and after this digit in
// earlier tiles. Runs in one block, with a thread per digit.
struct AddUp {
  static constexpr int kThreads = kDigits;
  int64_t tiles;
  int64_t* count;
  __device__ void operator()() const {
    SHARED(int64_t, upto, [2][kDigits]);
    const int digit = static_cast<int>(threadIdx.x);
    int64_t total = 0;
    for (int64_t t = 0; t < tiles; ++t) total += count[t * kDigits + digit];
    upto[0][digit] = total;
    __syncthreads();
    int from = 0;
    for (int distance = 1; distance < kDigits; distance *= 2, from = 1 - from) {
      upto[1 - from][digit] = upto[from][digit] + (digit >= distance ? upto[from][digit - distance] : 0);
      __syncthreads();
    }
    int64_t place = upto[from][digit] - total;
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t here = count[t * kDigits + digit];
      count[t * kDigits + digit] = place;
      place += here;
    }
  }
};

struct Place {
  static constexpr int kThreads = kTile;
  const Word* words;
  int64_t n;
  int shift;
  const int64_t* place;  // [tile][digit]
  Word* sorted;
  __device__ void operator()() const {
    SHARED(unsigned, of_warp, [kWarps][kDigits]);
    const int64_t i = int64_t{blockIdx.x} * kTile + threadIdx.x;
    const Digit digit = count_in_warp(words, i, n, shift, of_warp);
    if (i < n) {
      int64_t position = place[int64_t{blockIdx.x} * kDigits + digit.value] + digit.before;
      for (unsigned w = 0; w < threadIdx.x / 32; ++w) position += of_warp[w][digit.value];
      sorted[position] = words[i];
    }
  }
};

// Stores the row of every sorted word, and finds the first word of every id by bisection.
struct Finish {
  const Word* words;
  int64_t n, vocabulary;
  int64_t *rows_k, *start_u;
  HD void operator()(int64_t i) const {
    if (i < n) rows_k[i] = static_cast<int64_t>(words[i] & 0xffffffffu);
    if (i <= vocabulary) {
      int64_t low = 0, high = n;
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (words[middle] < static_cast<Word>(i) << 32) low = middle + 1;
        else high = middle;
      }
      start_u[i] = low;
    }
  }
};

template <class Kernel> void run(Device device, int64_t blocks, const Kernel& kernel) {
  launch("bucket_rows", device, {blocks, Kernel::kThreads}, kernel);
}

HOST void sort_on_gpu(const Tensor& ids, int64_t vocabulary, const RowBuckets& buckets) {
  const Device device = ids.device();
  const int64_t n = ids.size(), tiles = (n + kTile - 1) / kTile;
  Tensor buffers[2] = {like(ids, {n}), like(ids, {n})};
  const Tensor count = like(ids, {tiles, kDigits});
  auto words = [&](int i) { return reinterpret_cast<Word*>(buffers[i].data<int64_t>()); };
  for_each_element("bucket_rows", device, n, MakeWords{ids.data<int64_t>(), vocabulary, words(0)});
  for (int bit = 0; n > 0 && vocabulary >> bit != 0; bit += 8) {
    run(device, tiles, CountDigits{words(0), n, 32 + bit, count.data<int64_t>()});
    run(device, 1, AddUp{tiles, count.data<int64_t>()});
    run(device, tiles, Place{words(0), n, 32 + bit, count.data<int64_t>(), words(1)});
    std::swap(buffers[0], buffers[1]);
  }
  const int64_t larger = n > vocabulary ? n : vocabulary + 1;
  for_each_element(
      "bucket_rows", device, larger, Finish{words(0), n, vocabulary, buckets.rows_k.data<int64_t>(), buckets.start_u.data<int64_t>()});
}

HOST void sort_on_cpu(const Tensor& ids, int64_t vocabulary, const RowBuckets& buckets) {
  const int64_t *id = ids.data<int64_t>(), n = ids.size();
  int64_t *start = buckets.start_u.data<int64_t>(), *rows = buckets.rows_k.data<int64_t>();
  auto known = [&](int64_t r) { return id[r] >= 0 && id[r] < vocabulary; };
  for (int64_t v = 0; v <= vocabulary; ++v) start[v] = 0;
  for (int64_t r = 0; r < n; ++r)
    if (known(r)) ++start[id[r] + 1];
  for (int64_t v = 0; v < vocabulary; ++v) start[v + 1] += start[v];
  for (int64_t r = 0; r < n; ++r)
    if (known(r)) rows[start[id[r]]++] = r;
  for (int64_t v = vocabulary; v > 0; --v) start[v] = start[v - 1];  // placing the rows has moved every start to the start of the next id
  start[0] = 0;
}

}  // namespace row_buckets_kernels

using namespace row_buckets_kernels;

HOST RowBuckets bucket_rows(const Tensor& ids, int64_t vocabulary) {
  if (ids.size() >> 31) fail("bucket_rows: there are {} ids, expected fewer than 2^31", {ids.size()});
  if (vocabulary >> 31) fail("bucket_rows: the vocabulary size is {}, expected less than 2^31", {vocabulary});
  const RowBuckets buckets{like(ids, {vocabulary + 1}), like(ids, {ids.size()})};
  if (ids.device() == Device::cpu) sort_on_cpu(ids, vocabulary, buckets);
  else sort_on_gpu(ids, vocabulary, buckets);
  return buckets;
}

CUDA_ELEMENT(MakeWords);
CUDA_ELEMENT(Finish);
CUDA_KERNEL(CountDigits);
CUDA_KERNEL(AddUp);
CUDA_KERNEL(Place);

}  // namespace ricci
