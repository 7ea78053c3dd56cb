// NCCL's functions on the emulator's streams: an exchange copies out, other ranks carry the bytes between CPUs, and it copies in. It runs
// when its stream is waited for, so that a wait that was forgotten shows. MPI may not write into the emulator's memory itself: copy_in is
// the write that the emulator notices.
#include <memory>
#include <utility>

#include "cuda/device/device.h"
#include "cuda/emulator/emulator.h"
#include "cuda/emulator/streams.h"
#include "cuda/ranks/device_table.h"

namespace ricci {
namespace {

struct Piece {
  void* data;
  size_t bytes;
  int other;
};
struct Group {
  std::vector<Piece> sent, received;
};

// Bytes of the CPU, as a tensor; there is no dtype of bytes, so the last word may be only a part of one.
Tensor room_for(size_t bytes) { return Tensor({static_cast<int64_t>((bytes + 7) / 8)}, Dtype::i64); }

Tensor copied_out(const void* data, size_t bytes) {
  const Tensor t = room_for(bytes);
  if (bytes) emu::copy_out(t.raw(), data, bytes);
  return t;
}

void exchange(Ranks& carrier, const Group& group) {
  std::vector<Ranks::Tensors> outgoing(static_cast<size_t>(carrier.count())), incoming = outgoing;
  std::vector<Tensor> arrived;
  for (const Piece& piece : group.sent) outgoing[static_cast<size_t>(piece.other)].push_back(copied_out(piece.data, piece.bytes));
  for (const Piece& piece : group.received) {
    arrived.push_back(room_for(piece.bytes));
    incoming[static_cast<size_t>(piece.other)].push_back(arrived.back());
  }
  carrier.all_to_all(outgoing, incoming);
  carrier.wait();
  for (size_t i = 0; i < arrived.size(); ++i) emu::copy_in(group.received[i].data, arrived[i].raw(), group.received[i].bytes);
}

void gather(Ranks& carrier, char* shares, size_t bytes_of_one, int rank) {
  const auto count = static_cast<size_t>(carrier.count());
  const Tensor mine = copied_out(shares + static_cast<size_t>(rank) * bytes_of_one, bytes_of_one);
  const Tensor all({carrier.count(), mine.size()}, Dtype::i64);
  copy(all.rows(rank, 1), mine);
  carrier.all_gather(all);
  carrier.wait();
  for (size_t r = 0; r < count; ++r) emu::copy_in(shares + r * bytes_of_one, all.rows(static_cast<int64_t>(r), 1).raw(), bytes_of_one);
}

void add(Ranks& carrier, double* numbers, size_t count) {
  const Tensor t({static_cast<int64_t>(count)}, Dtype::f64);
  emu::copy_out(t.raw(), numbers, count * sizeof(double));
  carrier.sum(t);
  carrier.wait();
  emu::copy_in(numbers, t.raw(), count * sizeof(double));
}

void spread(Ranks& carrier, void* data, size_t bytes) {
  const Tensor t = copied_out(data, bytes);
  carrier.from_first(t);
  carrier.wait();
  emu::copy_in(data, t.raw(), bytes);
}

// Work that still waits on a stream after the table ended with an error has no ranks to carry it, and does nothing.
int queue(std::weak_ptr<Group> table, std::function<void()> work) {
  emu::queue_or_run([table = std::move(table), work = std::move(work)] {
    if (!table.expired()) work();
  });
  return 0;
}

}  // namespace

DeviceTable emulated_table(Ranks& ranks) {
  Ranks* const carrier = &ranks;
  const auto group = std::make_shared<Group>();
  return {
      .version = ranks.carrier(Device::cpu),
      .make_id = [](std::string&) { return 0; },
      .join = [](const std::string&, int, int) { return DeviceTable::kInProgress; },  // as NCCL's does; state() gives the result later
      .begin_group =
          [=] {
            *group = {};
            return 0;
          },
      .end_group = [=] { return queue(group, [=, pieces = *group] { exchange(*carrier, pieces); }); },
      .send =
          [=](const void* data, size_t bytes, int receiver) {
            group->sent.push_back({const_cast<void*>(data), bytes, receiver});
            return 0;
          },
      .receive =
          [=](void* data, size_t bytes, int sender) {
            group->received.push_back({data, bytes, sender});
            return 0;
          },
      .all_gather = [=](void* shares, size_t bytes,
                        int rank) { return queue(group, [=] { gather(*carrier, static_cast<char*>(shares), bytes, rank); }); },
      .sum = [=](double* numbers, size_t count) { return queue(group, [=] { add(*carrier, numbers, count); }); },
      .from_first = [=](void* data, size_t bytes) { return queue(group, [=] { spread(*carrier, data, bytes); }); },
      .state =
          [](int& state) {
            state = 0;
            return 0;
          },
      .abort = [] { return 0; },
      .text = [](int error) { return "error " + std::to_string(error); },
  };
}

}  // namespace ricci
