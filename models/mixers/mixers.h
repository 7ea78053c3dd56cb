// The list of mixers. A run file chooses one by name. To add a mixer, write its header and append its name here.
#pragma once
#include "core/choice.h"
#include "models/layers/type_list.h"
#include "models/mixers/avgpool.h"
#include "models/mixers/dispatcher.h"
#include "models/mixers/identity.h"
#include "models/mixers/metric.h"
#include "models/mixers/quad_full.h"
#include "models/mixers/sdp.h"

namespace ricci {

using Mixers = TypeList<Sdp, Dispatcher, QuadFull, Quad, POnly, Metric, MetricPsd, AveragePool, Identity>;

// The run-time choice: an index into the list.
enum class MixerKind : uint8_t {};
constexpr auto choices(MixerKind) {
  return Mixers::map([]<Mixer M>() { return M::kName; });
}
template <class M> inline constexpr MixerKind kind_of = static_cast<MixerKind>(Mixers::number_of<M>());

}  // namespace ricci
