// What the interpreters of formulas share: the numbers of operations, and how their loops are compiled.
#pragma once

#include <cstdint>

// One clone per vector width where the loader can pick among them; elsewhere the plain function.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__)
#define T10_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define T10_CLONES
#endif
#define T10_INLINE inline __attribute__((always_inline))

namespace t10 {

// The numbers of `t10.cost.formula.Opcode`.
enum Opcode : std::int32_t {
  kAdd, kSub, kMul, kDiv, kFloorDiv, kCeilDiv, kMod, kMin, kMax, kChunk, kNeg, kAbs, kFloor, kCeil, kTrunc, kSqrt,
  kLt, kLe, kEq, kNe, kAnd, kOr, kNot, kSelect, kOpcodes
};

}  // namespace t10
