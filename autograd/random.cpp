// The random state of a thread.
#include "autograd/random.h"

namespace ricci {
namespace {

thread_local RandomState state;

}  // namespace

RandomState random_state() { return state; }
void set_random_state(RandomState s) { state = s; }
PhiloxSource take_stream() { return {state.seed, state.next_stream++, state.base}; }

}  // namespace ricci
