#pragma once

#include "Graph.hpp"

namespace poplar {

enum class SyncType { INTERNAL, EXTERNAL, GLOBAL };

// The cycles of a sequence as two words. On a host: the sum of the longest estimates of its compute sets.
Tensor cycleCount(Graph &graph, program::Sequence &sequence, unsigned tile, SyncType type, const DebugContext &debug = {});

} // namespace poplar
