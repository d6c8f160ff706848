// Views of variables: what slicing, joining and repeating do to regions.
#pragma once

#include <poplar/Tensor.hpp>

#include <algorithm>

namespace poplar {

inline std::size_t product(const std::vector<std::size_t> &extents, std::size_t first = 0) {
  std::size_t result = 1;
  for (std::size_t i = first; i < extents.size(); ++i)
    result *= extents[i];
  return result;
}

Tensor::Tensor(Type type, std::vector<std::size_t> shape, std::vector<Region> regions)
    : type(type), extents(std::move(shape)), regions(std::make_shared<std::vector<Region>>(std::move(regions))) {}

std::size_t Tensor::numElements() const { return valid() ? product(extents) : 0; }

// Append the regions of elements begin .. end - 1, counted in the order of this view.
void Tensor::cut(std::size_t begin, std::size_t end, std::vector<Region> &into) const {
  std::size_t at = 0;
  for (const Region &region : *regions) {
    const std::size_t first = std::max(begin, at), last = std::min(end, at + region.count);
    if (first < last)
      into.push_back({region.variable, region.begin + (region.repeats ? 0 : first - at), last - first, region.repeats});
    at += region.count;
    if (at >= end)
      return;
  }
}

Tensor Tensor::operator[](std::size_t i) const {
  if (extents.empty() || i >= extents[0])
    throw graph_connection_error("index " + std::to_string(i) + " of a tensor with " +
                                 std::to_string(extents.empty() ? 0 : extents[0]) + " rows");
  const std::size_t size = product(extents, 1);
  std::vector<Region> found;
  cut(i * size, (i + 1) * size, found);
  return Tensor(type, {extents.begin() + 1, extents.end()}, std::move(found));
}

Tensor Tensor::slice(std::size_t begin, std::size_t end, unsigned dimension) const {
  if (dimension >= extents.size() || begin > end || end > extents[dimension])
    throw graph_connection_error("slice " + std::to_string(begin) + " .. " + std::to_string(end) + " of dimension " +
                                 std::to_string(dimension) + " with extent " +
                                 std::to_string(dimension < extents.size() ? extents[dimension] : 0));
  const std::size_t inner = product(extents, dimension + 1);
  const std::size_t outer = product(extents) / std::max<std::size_t>(1, inner * extents[dimension]);
  std::vector<Region> found;
  for (std::size_t i = 0; i < outer; ++i)
    cut((i * extents[dimension] + begin) * inner, (i * extents[dimension] + end) * inner, found);
  std::vector<std::size_t> shape = extents;
  shape[dimension] = end - begin;
  return Tensor(type, std::move(shape), std::move(found));
}

Tensor Tensor::flatten() const { return reshape({numElements()}); }

Tensor Tensor::reshape(ArrayRef<std::size_t> shape) const {
  if (product(shape.vector()) != numElements())
    throw graph_connection_error("reshape of " + std::to_string(numElements()) + " elements to " +
                                 std::to_string(product(shape.vector())));
  Tensor result = *this;
  result.extents = shape.vector();
  return result;
}

Tensor Tensor::broadcast(unsigned n, unsigned dimension) const {
  if (dimension != 0 || extents.empty())
    throw graph_connection_error("only dimension 0 can be broadcast on a host");
  std::vector<Region> found;
  if (regions->size() == 1 && regions->front().count == 1) {
    found.push_back({regions->front().variable, regions->front().begin, n, true});
  } else {
    for (unsigned i = 0; i < n; ++i)
      found.insert(found.end(), regions->begin(), regions->end());
  }
  std::vector<std::size_t> shape = extents;
  shape[0] *= n;
  return Tensor(type, std::move(shape), std::move(found));
}

Tensor Tensor::reinterpret(const Type &other) const {
  if (other.size() != type.size())
    throw graph_connection_error("elements of type " + type.toString() + " cannot be read as " + other.toString());
  Tensor result = *this;
  result.type = other;
  return result;
}

Tensor concat(ArrayRef<Tensor> tensors, unsigned dimension) {
  if (dimension != 0 || tensors.size() == 0)
    throw graph_connection_error("only dimension 0 of at least one tensor can be joined on a host");
  std::vector<Region> found;
  std::vector<std::size_t> shape = tensors[0].shape();
  shape.at(0) = 0;
  for (const Tensor &tensor : tensors) {
    if (tensor.elementType() != tensors[0].elementType())
      throw graph_connection_error("join of " + tensors[0].elementType().toString() + " and " +
                                   tensor.elementType().toString());
    shape[0] += tensor.dim(0);
    found.insert(found.end(), tensor.hostRegions().begin(), tensor.hostRegions().end());
  }
  return Tensor(tensors[0].elementType(), std::move(shape), std::move(found));
}

} // namespace poplar
