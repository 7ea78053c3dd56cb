// family: decoder. A language model whose body is one stack of blocks around the mixer that the run file names.
#pragma once
#include "models/families/language_model.h"

namespace ricci {

struct Decoder {
  static constexpr FamilyTraits kTraits{.name = "decoder", .mixes = true, .reads_layers = true};
  using Config = NoKeys;

  template <class Made> static void build(const ModelKeys& c, const Config&, const Made& made) {
    Mixers::at(static_cast<size_t>(c.mixer), [&]<class M>() { made(LanguageModel(c, Stack<M>(stack_of<M>(c, c.of<M>())))); });
  }
};

}  // namespace ricci
