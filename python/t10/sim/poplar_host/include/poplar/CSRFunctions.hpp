// The floating-point mode of tiles. On a host assembly obeys it; C++ bodies know the mode without any flag only.
#pragma once

#include "Graph.hpp"

namespace poplar {

struct FloatingPointBehaviour {
  bool inv = true, div0 = true, oflo = true, esr = true, nanoo = true;
  FloatingPointBehaviour() = default;
  FloatingPointBehaviour(bool inv, bool div0, bool oflo, bool esr, bool nanoo)
      : inv(inv), div0(div0), oflo(oflo), esr(esr), nanoo(nanoo) {}
};

void setFloatingPointBehaviour(Graph &graph, program::Sequence &sequence, const FloatingPointBehaviour &behaviour,
                               const DebugContext &debug = {});

} // namespace poplar
