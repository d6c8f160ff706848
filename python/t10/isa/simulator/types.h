// Values of registers, the shape of a tile, and traps.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace t10::isa {

using Word = std::uint32_t;

struct Pair {
  Word w[2];
};

struct Quad {
  Word w[4];
};

// What the chip's description says of a tile. Memory is [base, end); a bank is a memory element below the interleaved
// region, one of a pair in it. A worker issues once in `n_workers` clocks.
struct TileShape {
  Word base, end, interleaved_base, element_bytes;
  int n_workers;

  Word memory_bytes() const { return end - base; }
};

constexpr int kMostWorkers = 8;    // bits of a write watch
constexpr int kResultClocks = 6;   // the supervisor sees a result so many clocks after issue
constexpr Word kUnclear = 0x7fdeffbe; // what registers and weights hold before anything wrote them: NaN as f32 and f16
constexpr Word kReturnAddress = 0; // where supervisor code returns to: no address of code

// Why a simulation stopped; the names are those of the exceptions of the hardware where there is one.
enum class Cause : std::uint8_t {
  kNone,
  kInvalidAddress,      // outside the memory, or not aligned
  kConflict,            // two accesses of one instruction in one bank
  kInvalidInstruction,  // not executable here: solo words in a repeated body, a flag that does not exist
  kInvalidOperation,    // executable, but with operands that are not allowed or not modelled
  kInvalidPc,           // no instruction there
  kBreakpoint,          // trap
  kExecution,           // workers were active when they must not be
  kSharedWord,          // check of this simulator: two workers wrote into one word
  kNotPreserved,        // check of this simulator: a register the calling convention preserves was changed
  kCycleLimit,          // check of this simulator: no end in sight
};

const char* cause_name(Cause cause);

struct Trap : std::runtime_error {
  Trap(Cause cause_, std::string message, Word address_ = 0)
      : std::runtime_error(std::move(message)), cause(cause_), address(address_) {}

  Cause cause;
  Word address;
  Word pc = 0;
  int line = 0;
  int tile = 0;
  int worker = -1;  // -1: the supervisor
  std::int64_t cycle = 0;
};

}  // namespace t10::isa
