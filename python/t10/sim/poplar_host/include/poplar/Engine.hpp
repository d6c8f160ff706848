// Engines: take a graph and its programs, check them, and run them.
#pragma once

#include "Graph.hpp"

#include <iosfwd>
#include <memory>

namespace poplar {

struct EngineData; // not part of Poplar's interface

class Executable {};

Executable compileGraph(const Graph &graph, ArrayRef<program::Program> programs, const OptionFlags &options = {});

class Engine {
public:
  Engine(const Graph &graph, ArrayRef<program::Program> programs, const OptionFlags &options = {});
  void load(const Device &device);
  void run(unsigned program = 0, const std::string &name = "");
  void connectStream(StringRef handle, void *begin, void *end);
  void readTensor(StringRef handle, void *begin, void *end);
  void printProfileSummary(std::ostream &stream, const OptionFlags &options = {});

private:
  std::shared_ptr<EngineData> data;
};

} // namespace poplar
