// Graphs: variables with their mapping to tiles, vertices with what is connected to their fields, streams.
#pragma once

#include "Device.hpp"
#include "Program.hpp"
#include "Target.hpp"
#include "Tensor.hpp"

#include <memory>

namespace poplar {

struct GraphData; // what a graph consists of; not part of Poplar's interface

class VertexRef;

class FieldRef {
public:
  FieldRef(unsigned vertex, std::string name) : vertex(vertex), name(std::move(name)) {}
  unsigned vertex;
  std::string name;
};

class VertexRef {
public:
  explicit VertexRef(unsigned id = ~0u) : id(id) {}
  FieldRef operator[](StringRef field) const { return FieldRef(id, field.str()); }
  unsigned getId() const { return id; }

private:
  unsigned id;
};

enum class CodeletFileType { PreprocessedAsmSource, AsmSource, CSource, CppSource, IrSource, Object, Auto };

class Graph {
public:
  explicit Graph(const Target &target);
  explicit Graph(const Device &device) : Graph(device.getTarget()) {}

  const Target &getTarget() const;
  bool addCodelets(StringRef file, CodeletFileType type = CodeletFileType::Auto, StringRef flags = "");
  void addCodelets(ArrayRef<std::string> files, StringRef flags = "");

  Tensor addVariable(const Type &type, ArrayRef<std::size_t> shape, const DebugContext &debug = {});
  template <typename T>
  Tensor addConstant(const Type &type, ArrayRef<std::size_t> shape, const T *values, const DebugContext &debug = {}) {
    if (sizeof(T) != type.size())
      throw poplar_error("a constant's values have another size than its type " + type.toString());
    return constant(type, shape, values, debug);
  }
  Tensor addConstantHalf(const Type &type, ArrayRef<std::size_t> shape, const std::uint16_t *values,
                         const DebugContext &debug = {}) {
    return constant(type, shape, values, debug);
  }
  void setTileMapping(const Tensor &tensor, unsigned tile);
  void setTileMapping(const VertexRef &vertex, unsigned tile);

  ComputeSet addComputeSet(const DebugContext &debug = {});
  VertexRef addVertex(ComputeSet set, StringRef vertex_type);
  void connect(const FieldRef &field, const Tensor &tensor);
  template <typename T> void setInitialValue(const FieldRef &field, T value) {
    static_assert(sizeof(T) == 4, "fields are 32-bit words");
    std::uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    initialValue(field, bits, static_cast<T>(0.5) != T(0) ? 'f' : static_cast<T>(-1) < T(0) ? 'i' : 'u');
  }
  void setPerfEstimate(const VertexRef &vertex, std::uint64_t cycles, std::uint64_t flops = 0);

  DataStream addHostToDeviceFIFO(StringRef handle, const Type &type, std::size_t n_elements);
  DataStream addDeviceToHostFIFO(StringRef handle, const Type &type, std::size_t n_elements);
  void createHostRead(StringRef handle, const Tensor &tensor, bool rearrange_on_host = false);

  std::shared_ptr<GraphData> hostData() const { return data; }

private:
  std::shared_ptr<GraphData> data;

  Tensor constant(const Type &type, ArrayRef<std::size_t> shape, const void *values, const DebugContext &debug);
  void initialValue(const FieldRef &field, std::uint32_t bits, char kind);
};

} // namespace poplar
