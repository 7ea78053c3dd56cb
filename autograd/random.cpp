// The random state of a thread.
#include "autograd/random.h"

namespace ricci {
namespace {

thread_local RandomState state;

}  // namespace

RandomState random_state() { return state; }
void set_random_state(RandomState s) { state = s; }
uint64_t take_stream() { return state.next_stream++; }

}  // namespace ricci
