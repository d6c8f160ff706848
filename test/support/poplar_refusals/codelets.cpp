// Vertices of the program beside it.
#include <poplar/Vertex.hpp>

using namespace poplar;

namespace t10 {

// y[0 .. n - 1] += x
class Add : public MultiVertex {
public:
  Input<Vector<float, VectorLayout::ONE_PTR, 8>> x;
  InOut<Vector<float, VectorLayout::ONE_PTR, 8>> y;
  Output<Vector<unsigned char, VectorLayout::ONE_PTR, 8>> space;
  unsigned n;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < n; i += numWorkers())
      y[i] = y[i] + x[i];
    return true;
  }
};

class [[poplar::constraint("elem(*a) != elem(*b)")]] Apart : public MultiVertex {
public:
  Input<Vector<unsigned char, VectorLayout::ONE_PTR, 8>> a;
  Input<Vector<unsigned char, VectorLayout::ONE_PTR, 8>> b;

  bool compute(unsigned) {
    return true;
  }
};

class Twice : public MultiVertex {
public:
  Output<Vector<unsigned char, VectorLayout::ONE_PTR, 8>> a;
  Output<Vector<unsigned char, VectorLayout::ONE_PTR, 8>> b;

  bool compute(unsigned) {
    return true;
  }
};

} // namespace t10
