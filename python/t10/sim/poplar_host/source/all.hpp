// Everything but the vertex classes: one translation unit includes this.
#pragma once

#include "tensor.hpp"

#include "graph.hpp"

#include "engine.hpp"
