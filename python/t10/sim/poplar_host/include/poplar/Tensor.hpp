// Tensors: views of elements of variables, in an order of their own.
#pragma once

#include "Basics.hpp"

#include <memory>

namespace poplar {

// `count` elements of a variable from `begin` on; `repeats` tells that it is the same element each time.
struct Region {
  unsigned variable;
  std::size_t begin, count;
  bool repeats;
};

class Tensor {
public:
  Tensor() = default;
  Tensor(Type type, std::vector<std::size_t> shape, std::vector<Region> regions);

  bool valid() const { return regions != nullptr; }
  Type elementType() const { return type; }
  std::size_t numElements() const;
  std::size_t rank() const { return extents.size(); }
  std::size_t dim(unsigned i) const { return extents.at(i); }
  std::vector<std::size_t> shape() const { return extents; }

  Tensor operator[](std::size_t i) const;
  Tensor slice(std::size_t begin, std::size_t end, unsigned dimension = 0) const;
  Tensor flatten() const;
  Tensor reshape(ArrayRef<std::size_t> shape) const;
  Tensor broadcast(unsigned n, unsigned dimension) const;
  Tensor reinterpret(const Type &type) const;

  // Not part of Poplar's interface: what the view consists of.
  const std::vector<Region> &hostRegions() const { return *regions; }

private:
  Type type;
  std::vector<std::size_t> extents;
  std::shared_ptr<const std::vector<Region>> regions;

  void cut(std::size_t begin, std::size_t end, std::vector<Region> &into) const;
};

Tensor concat(ArrayRef<Tensor> tensors, unsigned dimension = 0);

} // namespace poplar
