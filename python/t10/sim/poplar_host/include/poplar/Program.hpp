// Programs: trees of steps. A Sequence may grow until an Engine takes it.
#pragma once

#include "Tensor.hpp"

#include <memory>

namespace poplar {

class ComputeSet {
public:
  explicit ComputeSet(unsigned id = ~0u) : number(id) {}
  unsigned getId() const { return number; }

private:
  unsigned number;
};

struct DataStream {
  std::string handle;
  Type type;
  std::size_t n_elements = 0;
  bool to_device = false;
};

namespace program {

// One step, not part of Poplar's interface.
struct Node {
  enum Kind { sequence, repeat, execute, copy, copy_from_stream, copy_to_stream, undefine, begin_count, end_count, floating_point };
  Kind kind;
  std::string name;
  std::vector<std::shared_ptr<const Node>> children;
  unsigned count = 0; // of a repeat; number of the compute set of an execute; $FP_CTL
  Tensor source, target;
  std::string stream;
};

class Program {
public:
  Program() : node(std::make_shared<Node>(Node{Node::sequence, "", {}, 0, {}, {}, ""})) {}
  std::shared_ptr<Node> hostNode() const { return node; }

protected:
  explicit Program(Node step) : node(std::make_shared<Node>(std::move(step))) {}
  std::shared_ptr<Node> node;
};

class Sequence : public Program {
public:
  Sequence() = default;
  Sequence(std::initializer_list<Program> steps, const DebugContext & = {}) {
    for (const Program &step : steps)
      add(step);
  }
  void add(const Program &step) { node->children.push_back(step.hostNode()); }
};

class Repeat : public Program {
public:
  Repeat(unsigned count, const Program &body, const DebugContext &debug = {})
      : Program(Node{Node::repeat, debug.path(), {body.hostNode()}, count, {}, {}, ""}) {}
};

class Execute : public Program {
public:
  explicit Execute(ComputeSet set, const DebugContext &debug = {})
      : Program(Node{Node::execute, debug.path(), {}, set.getId(), {}, {}, ""}) {}
};

class Copy : public Program {
public:
  Copy(const Tensor &source, const Tensor &target, bool = false, const DebugContext &debug = {})
      : Program(Node{Node::copy, debug.path(), {}, 0, source, target, ""}) {}
  Copy(const DataStream &stream, const Tensor &target, bool = false, const DebugContext &debug = {})
      : Program(Node{Node::copy_from_stream, debug.path(), {}, 0, {}, target, stream.handle}) {}
  Copy(const Tensor &source, const DataStream &stream, bool = false, const DebugContext &debug = {})
      : Program(Node{Node::copy_to_stream, debug.path(), {}, 0, source, {}, stream.handle}) {}
};

class WriteUndef : public Program {
public:
  explicit WriteUndef(const Tensor &target, const DebugContext &debug = {})
      : Program(Node{Node::undefine, debug.path(), {}, 0, {}, target, ""}) {}
};

// Not part of Poplar's interface: marks for cycleCount.
class HostCount : public Program {
public:
  explicit HostCount(bool begin, const Tensor &target = {})
      : Program(Node{begin ? Node::begin_count : Node::end_count, "", {}, 0, {}, target, ""}) {}
};

// Not part of Poplar's interface: sets the floating-point mode of all tiles.
class HostMode : public Program {
public:
  HostMode(unsigned fp_control, const DebugContext &debug)
      : Program(Node{Node::floating_point, debug.path(), {}, fp_control, {}, {}, ""}) {}
};

} // namespace program
} // namespace poplar
