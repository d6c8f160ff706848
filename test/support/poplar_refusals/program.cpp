// A small program that keeps Poplar's rules, but for the one that its argument names: a host must refuse it.
#include <poplar/CSRFunctions.hpp>
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>

#include <iostream>

using namespace poplar;
using namespace poplar::program;

constexpr unsigned N_TILES = 2, N = 8;

Tensor rows(Graph &graph, const Type &type, unsigned n, const char *name, bool is_mapped = true) {
  const Tensor made = graph.addVariable(type, {N_TILES, n}, name);
  for (unsigned tile = 0; is_mapped && tile < N_TILES; ++tile)
    graph.setTileMapping(made[tile], tile);
  return made;
}

Tensor constant(Graph &graph, bool is_mapped) {
  const float values[N_TILES] = {1, 2};
  const Tensor made = graph.addConstant<float>(FLOAT, {N_TILES, 1}, &values[0]);
  for (unsigned tile = 0; is_mapped && tile < N_TILES; ++tile)
    graph.setTileMapping(made[tile], tile);
  return made;
}

void run(const std::string &wrong) {
  IPUModel model("ipu2");
  model.tilesPerIPU = N_TILES;
  const Device device = model.createDevice();
  Graph graph(device);
  if (wrong != "no codelets")
    graph.addCodelets(wrong == "missing codelets" ? "absent.cpp" : FOLDER "/codelets.cpp");
  const Tensor x = rows(graph, FLOAT, N, "x", wrong != "unmapped edge"), y = rows(graph, FLOAT, N, "y");
  const Tensor z = rows(graph, FLOAT, N, "z", wrong != "unmapped copy");
  const Tensor space = rows(graph, UNSIGNED_CHAR, 64, "space"), whole = rows(graph, INT, N, "whole");
  const Tensor fixed = constant(graph, wrong != "unmapped constant");
  if (wrong == "tile of no target")
    graph.setTileMapping(graph.addVariable(FLOAT, {1}, "far"), N_TILES);
  if (wrong == "two tiles")
    graph.setTileMapping(x[0], 1);

  const ComputeSet set = graph.addComputeSet("set");
  const auto add = [&](const Tensor &in, const Tensor &out, const Tensor &scratch, unsigned tile) {
    const VertexRef vertex = graph.addVertex(set, wrong == "unknown codelet" ? "t10::Subtract" : "t10::Add");
    graph.connect(vertex["x"], in);
    if (wrong != "missing field")
      graph.connect(vertex["y"], out);
    if (wrong == "field twice")
      graph.connect(vertex["x"], in);
    graph.connect(vertex[wrong == "unknown field" ? "place" : "space"], scratch);
    if (wrong == "word of another type")
      graph.setInitialValue(vertex["n"], 8.0f);
    else if (wrong != "missing word")
      graph.setInitialValue(vertex[wrong == "value of an edge" ? "y" : "n"], N);
    if (wrong != "vertex without tile")
      graph.setTileMapping(vertex, tile);
    if (wrong != "no estimate")
      graph.setPerfEstimate(vertex, 100);
  };
  for (unsigned tile = 0; tile < N_TILES; ++tile) {
    if (wrong == "input over output")
      add(y[tile], y[tile], space[tile], tile);
    else if (wrong == "unaligned edge")
      add(x[tile], y[tile].slice(1, N), space[tile], tile);
    else if (wrong == "edge of another type")
      add(x[tile], whole[tile], space[tile], tile);
    else if (wrong == "edge of rank two")
      add(x, y[tile], space[tile], tile);
    else if (wrong == "edge in two pieces")
      add(concat({x[tile].slice(0, 2), x[tile].slice(4, N)}), y[tile], space[tile], tile);
    else if (wrong == "edge on another tile")
      add(x[1 - tile], y[tile], space[tile], tile);
    else if (wrong == "edge writes a constant")
      add(x[tile], fixed[tile], space[tile], tile);
    else
      add(x[tile], y[tile], space[tile], tile);
  }
  if (wrong == "two writers")
    add(x[1], y[1].slice(4, N), rows(graph, UNSIGNED_CHAR, 64, "more")[1], 1);
  if (wrong == "reader and writer")
    add(y[1], z[1], rows(graph, UNSIGNED_CHAR, 64, "more")[1], 1);
  if (wrong == "apart but one" || wrong == "scratch over scratch") {
    const Tensor more = rows(graph, UNSIGNED_CHAR, 64, "more");
    const VertexRef vertex = graph.addVertex(set, wrong == "apart but one" ? "t10::Apart" : "t10::Twice");
    graph.connect(vertex["a"], more[0]);
    graph.connect(vertex["b"], more[0].slice(8, 64));
    graph.setTileMapping(vertex, 0);
    graph.setPerfEstimate(vertex, 1);
  }

  Sequence steps;
  if (wrong == "exceptions")
    setFloatingPointBehaviour(graph, steps, FloatingPointBehaviour(true, false, false, false, false));
  else if (wrong == "stochastic rounding")
    setFloatingPointBehaviour(graph, steps, FloatingPointBehaviour(false, false, false, true, false));
  else if (wrong != "no floating-point mode")
    setFloatingPointBehaviour(graph, steps, FloatingPointBehaviour(false, false, false, false, false));
  const DataStream in = graph.addHostToDeviceFIFO("in", FLOAT, wrong == "stream of another size" ? N : N_TILES * N);
  const DataStream out = graph.addDeviceToHostFIFO(wrong == "stream twice" ? "in" : "out", FLOAT, N_TILES * N);
  steps.add(Copy(in, wrong == "stream writes twice" ? concat({x[0], x[0]}) : x.flatten()));
  if (wrong == "stream into a constant")
    steps.add(Copy(graph.addHostToDeviceFIFO("two", FLOAT, N_TILES), fixed.flatten()));
  steps.add(Copy(concat({fixed[0].broadcast(N, 0), fixed[1].broadcast(N, 0)}), y.flatten()));
  steps.add(Execute(set));
  if (wrong == "copy of another type")
    steps.add(Copy(x, whole));
  if (wrong == "copy of another size")
    steps.add(Copy(x[0], y[0].slice(0, 4)));
  if (wrong == "copy over itself")
    steps.add(Copy(y[0].slice(0, 4), y[0].slice(2, 6)));
  if (wrong == "copy writes twice")
    steps.add(Copy(x[0], concat({y[0].slice(0, 4), y[0].slice(0, 4)})));
  if (wrong == "copy to a constant")
    steps.add(Copy(x[0].slice(0, 1), fixed[0]));
  if (wrong == "copy to a broadcast")
    steps.add(Copy(x[0], y[0].slice(0, 1).broadcast(N, 0)));
  if (wrong == "undefined constant")
    steps.add(WriteUndef(fixed));
  steps.add(Copy(y, z));
  steps.add(Copy(z.flatten(), wrong == "stream backward" ? in : out));

  Engine engine(graph, {steps});
  if (wrong != "not loaded")
    engine.load(device);
  float from[N_TILES * N], to[N_TILES * N];
  for (unsigned i = 0; i < N_TILES * N; ++i)
    from[i] = static_cast<float>(i);
  engine.connectStream(wrong == "unknown stream" ? "inn" : "in", from, from + N_TILES * N);
  if (wrong != "unconnected stream")
    engine.connectStream("out", to, to + (wrong == "small buffer" ? 1 : N_TILES * N));
  engine.run(wrong == "no such program" ? 1 : 0);
  for (unsigned i = 0; i < N_TILES * N; ++i)
    if (to[i] != from[i] + static_cast<float>(1 + i / N))
      throw std::runtime_error("wrong number");
  std::cout << "accepted\n";
}

int main(int, char **argv) {
  try {
    run(argv[1]);
    return 0;
  } catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
