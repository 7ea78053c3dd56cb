// Ranks whose tensors may be on a device: tensors of the cpu are carried by the ranks within, tensors of a device by its table. A
// device has a stream for its exchanges. It waits for the main one where an exchange is begun, and the host for it in wait(): so packing,
// sums and updates are on the main stream, and what is sent overlaps with the backward of what is not complete yet. The host waits because
// a rank that is stuck is noticed there, and not in a queue of launches that has become full.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device/stream.h"
#include "cuda/ranks/device_table.h"
#include "cuda/ranks/ranks.h"

namespace ricci {

class DeviceRanks final : public Ranks {
 public:
  using MakeTable = std::function<DeviceTable(Device device, Ranks& carrier)>;
  static DeviceTable table_of(Device device, Ranks& carrier);
  explicit DeviceRanks(std::unique_ptr<Ranks> within, MakeTable make_table = table_of);

  std::string carrier(Device device) const override;
  void all_to_all(const std::vector<Tensors>& outgoing, const std::vector<Tensors>& incoming) override;
  void all_gather(const Tensor& equal_shares) override;
  void sum(const Tensor& numbers) override;
  using Ranks::from_first;
  void from_first(const Tensor& t) override;
  void wait_but_for(int64_t last) override;  // for the cpu; on a device all have ended
  void wait_patiently() override;
  void wait_for_first() override;
  void wait_until(const std::function<bool()>& done) override { within_->wait_until(done); }
  double waited() const override { return within_->waited() - computed_; }
  void at(const std::string& where) override { within_->at(where); }
  const std::string& where() const override { return within_->where(); }
  void set_timeout(double seconds) override { within_->set_timeout(seconds); }
  [[noreturn]] void end_all(const std::string& line) override;

 private:
  struct Exchange {
    Exchange(DeviceTable t, Device device) : table(std::move(t)), stream(device) {}
    DeviceTable table;
    Stream stream;
    std::vector<Tensor> kept;  // until wait()
  };
  void begin_testing() override;
  void end_testing() override;
  Exchange& exchange(Device device);
  void check(Exchange& e, int error, const char* call);
  void look_at(Exchange& e);
  void wait_for(Exchange& e, Device device);
  Ranks& for_the_cpu();
  template <class F> void begin(const Tensor& t, const char* call, const F& f);

  std::unique_ptr<Ranks> within_;
  std::unique_ptr<Testing> testing_;
  MakeTable make_table_;
  double computed_ = 0;  // seconds of waiting in which the device computed
  std::map<Device, Exchange> exchanges_;
};

// `gpus` has one text of gpu_in_use() per rank. Returns a warning where ranks of a machine see one GPU each, else an empty text. Error:
// two ranks of a machine use the same one.
std::string about_gpus(const Ranks& ranks, const std::vector<std::string>& gpus);

}  // namespace ricci
