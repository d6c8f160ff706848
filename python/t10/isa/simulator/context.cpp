// Contexts beyond the fast path: errors, control registers, conversions to integers, axpy and its kin.
#include "context.h"

#include <cstdio>

#include "machine.h"
#include "matrix_engine.h"

namespace t10::isa {
namespace {

std::string hex(Word value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", value);
  return text;
}

[[noreturn]] void no_register(const char* operation, Word csr) {
  throw Trap(Cause::kInvalidOperation, std::string(operation) + ": control register " + hex(csr) + " is not modelled");
}

std::uint64_t rotated(std::uint64_t x, int by) { return x << by | x >> (64 - by); }

}  // namespace

void bad_flags(Word flags) {
  throw Trap(Cause::kInvalidInstruction, "no flags of this instruction have the number " + std::to_string(flags));
}

void Weights::set(int n, Pair value) {
  const int unit = n / 4;
  const int phase = n % 4;
  raw_words[n] = value;
  for (int lane = 0; lane < 4; lane++) halves[phase][lane][unit] = half(value, lane);
  for (int i = 0; i < 2; i++) words[2 * phase + i][unit] = number(value.w[i]);
}

Context::Context() {
  for (int i = 0; i < 12; i++) m[i] = kUnclear;
  for (int i = 0; i < 8; i++) a[i] = kUnclear;
  for (int i = 0; i < 16; i++) even[i] = odd[i] = number(kUnclear);
}

void Context::connect(const TileShape& shape, std::uint8_t* bytes) {
  memory = bytes;
  memory_base = shape.base;
  memory_bytes = shape.memory_bytes();
  interleaved_base = shape.interleaved_base;
  for (element_bits = 0; Word(1) << element_bits < shape.element_bytes;) element_bits++;
  n_workers = shape.n_workers;
}

void Context::settle() {
  for (int set = 0; set < 2; set++) {
    float* queue = odd + 8 * set;
    std::rotate(queue, queue + 2 * head[set], queue + 8);
    head[set] = 0;
  }
}

void Context::bad_address(Word address, Word size) const {
  const Word end = memory_base + memory_bytes;
  std::string why = "access of " + std::to_string(size) + " bytes at " + hex(address);
  if (address < memory_base || address > end - size)
    why += " outside the memory " + hex(memory_base) + ".." + hex(end);
  else if (address % size != 0)
    why += " is not aligned";
  else
    why += " outside the interleaved memory";
  throw Trap(Cause::kInvalidAddress, why, address);
}

std::uint8_t* Context::outside(Word address, Word size) const {
  static thread_local std::uint8_t nothing[16];
  if (!is_counting || (address - memory_base) % size != 0) bad_address(address, size);
  was_outside = true;
  return nothing;
}

void Context::conflict(Word first, Word second) const {
  throw Trap(Cause::kConflict, "accesses at " + hex(first) + " and " + hex(second) + " are in one memory bank", first);
}

void Context::shared_word(Word address) const {
  throw Trap(Cause::kSharedWord, "two workers wrote into the word at " + hex(address & ~3u), address & ~3u);
}

void Context::trap(Word number) const { throw Trap(Cause::kBreakpoint, "trap " + std::to_string(number)); }

Word Context::get(Word csr) const {
  if (worker >= 0) {
    switch (csr) {
      case 1: return Word(worker);
      case 2: return m[13];
      case 3: return m[12];
      case 4: return repeat_count;
      case 0x60: return Word(slots * n_workers);
      case 0x61: return Word(std::uint64_t(slots * n_workers) >> 32);
      case 0x70: return debug_data;
      default: no_register("get", csr);
    }
  }
  switch (csr) {
    case 3: return Word(tile->number);
    case 0x20: return tile->fp_initial;
    case 0x50: return tile->weights_from;
    case 0x60: return Word(tile->now);
    case 0x61: return Word(std::uint64_t(tile->now) >> 32);
    case 0x70: return debug_data;
    default:
      if (csr >= 0x21 && csr < 0x21 + Word(n_workers)) return tile->worker_bases[csr - 0x21];
      no_register("get", csr);
  }
}

void Context::put(Word csr, Word value) {
  if (csr == 0x70) {
    debug_data = value;
    return;
  }
  if (worker >= 0) {
    if (csr != 4) no_register("put", csr);
    repeat_count = value & 0xffff;
    return;
  }
  if (csr == 2) {
    if ((value & 3) != 0) throw Trap(Cause::kInvalidOperation, "put $CR: only ZCWEI (bit 2) is modelled");
    if ((value & 4) != 0) tile->weights.clear();
  } else if (csr == 0x20) {
    tile->fp_initial = value;
  } else if (csr == 0x50) {
    tile->weights_from = value;
    tile->weights_ready = tile->now + kResultClocks;
  } else if (csr >= 0x21 && csr < 0x21 + Word(n_workers)) {
    tile->worker_bases[csr - 0x21] = value;
  } else {
    no_register("put", csr);
  }
}

void Context::set_fp_control(Word value) {
  constexpr Word kExceptions = 7, kStochastic = 1u << 19, kNanOnOverflow = 1u << 20;
  if ((value & kStochastic) != 0)
    throw Trap(Cause::kInvalidOperation, "FP_CTL: stochastic rounding (ESR) is not modelled");
  if ((value & kExceptions) != 0)
    throw Trap(Cause::kInvalidOperation, "FP_CTL: floating-point exceptions (INV, DIV0, OFLO) are not modelled");
  if ((value & ~kNanOnOverflow) != 0)
    throw Trap(Cause::kInvalidOperation, "FP_CTL " + hex(value) + ": only NANOO (bit 20) is modelled");
  fp_control = value;
  overflow16 = (value & kNanOnOverflow) != 0 ? kNan16 : kLargest16;
}

Word Context::uget(Word csr) const {
  switch (csr) {
    case 0: return 0;
    case 2: return fp_control;
    case 3: return Word(random_state[0]);
    case 4: return Word(random_state[0] >> 32);
    case 5: return Word(random_state[1]);
    case 6: return Word(random_state[1] >> 32);
    case 8: return tas;
    default: no_register("uget", csr);
  }
}

void Context::uput(Word csr, Word value) {
  const auto low = [value](std::uint64_t& state) { state = (state & ~0xffffffffull) | value; };
  const auto high = [value](std::uint64_t& state) { state = (state & 0xffffffffull) | std::uint64_t(value) << 32; };
  switch (csr) {
    case 1:
      if ((value & 8) != 0) std::fill(even, even + 16, 0.0f), std::fill(odd, odd + 16, 0.0f);
      return;
    case 2: return set_fp_control(value);
    case 3: return low(random_state[0]);
    case 4: return high(random_state[0]);
    case 5: return low(random_state[1]);
    case 6: return high(random_state[1]);
    case 7:
      low(random_state[0]);
      random_state[0] = (random_state[0] & 0xffffffffull) | std::uint64_t(~value) << 32;
      random_state[1] = (value << 13 | ~value >> 19) | std::uint64_t(~value << 13 | value >> 19) << 32;
      return;
    case 8: tas = value; return;
    default: no_register("uput", csr);
  }
}

// xoroshiro128aox (arXiv 2203.04058).
std::uint64_t Context::random_bits() {
  const std::uint64_t s0 = random_state[0];
  const std::uint64_t sx = s0 ^ random_state[1];
  const std::uint64_t sa = s0 & random_state[1];
  random_state[0] = rotated(s0, 55) ^ sx ^ sx << 14;
  random_state[1] = rotated(sx, 36);
  return sx ^ (rotated(sa, 1) | rotated(sa, 2));
}

void Context::run_all(Word entry, Word state, Word stride_words) {
  if (tile->is_launched) throw Trap(Cause::kExecution, "runall before sync: workers are still active");
  tile->machine->launch(*tile, entry, state, stride_words);
}

void Context::sync(Word zone) {
  if (zone != 0) throw Trap(Cause::kInvalidOperation, "sync: only the local zone is modelled");
  if (!tile->is_launched) return;
  tile->now = std::max(tile->now, tile->last_exit + n_workers);
  tile->is_launched = false;
}

void Context::load_weights(Word n, int n_words) {
  if (tile->is_launched) throw Trap(Cause::kExecution, "weights loaded before sync: workers are still active");
  if (n + Word(n_words) > 64) throw Trap(Cause::kInvalidOperation, "no weight register " + std::to_string(n));
  const Word from = tile->weights_from;
  if (n_words == 2) {
    const Quad both = load128(from);
    tile->weights.set(int(n), {{both.w[0], both.w[1]}});
    tile->weights.set(int(n) + 1, {{both.w[2], both.w[3]}});
  } else {
    tile->weights.set(int(n), load64(from));
  }
  tile->weights_from = from + 8 * Word(n_words);
}

Word Context::integral(Word x, Word mode) const {
  if (mode == 2) return bits(std::floor(number(x)));
  if (mode == 3) return bits(std::trunc(number(x)));
  throw Trap(Cause::kInvalidOperation, "f32int: rounding mode " + std::to_string(mode) + " is not public");
}

Word Context::signed_integer(Word x) const {
  const double value = std::nearbyint(double(number(x)));
  if (value != value) return 0;
  return Word(std::int32_t(std::min(std::max(value, -2147483648.0), 2147483647.0)));
}

Word Context::unsigned_integer(Word x) const {
  const double value = std::nearbyint(double(number(x)));
  if (value != value) return 0;
  return Word(std::min(std::max(value, 0.0), 4294967295.0));
}

Pair Context::axpy(Pair x, Pair y) {
  const Pair before = {{bits(even[0]), bits(even[1])}};
  for (int i = 0; i < 2; i++) even[i] = number(tas) * number(x.w[i]) + number(y.w[i]);
  return before;
}

Pair Context::mix(Pair x, Pair y) {
  const Pair before = narrow<Pair>(even, overflow16);
  for (int i = 0; i < 4; i++) even[i] = half(tas, 0) * half(x, i) + half(tas, 1) * half(y, i);
  return before;
}

Pair Context::drain(Pair s, Word chain) {
  if (chain > 1) throw Trap(Cause::kInvalidOperation, "gina: only the chains 0 and 1 are public");
  settle();
  float* sums = chain == 0 ? even : odd;
  const Pair first = {{bits(sums[0]), bits(sums[1])}};
  for (int i = 0; i < 6; i++) sums[i] = sums[i + 2];
  sums[6] = number(s.w[0]);
  sums[7] = number(s.w[1]);
  return first;
}

Pair Context::transpose_in(Pair x, Pair y, Word flag) {
  if (flag > 1) bad_flags(flag);
  if (flag == 0) std::copy(rows, rows + 4, rows_before);
  rows[2 * flag] = x;
  rows[2 * flag + 1] = y;
  std::fill(even, even + 16, number(kUnclear));
  const auto at = [&](int row) { return rows_before[row].w[1] >> (16 * flag); };
  return {{halves_of(at(0), at(1)), halves_of(at(2), at(3))}};
}

Pair Context::transpose_out(Word flag) const {
  if (flag > 1) bad_flags(flag);
  const auto at = [&](int row) { return rows[row].w[0] >> (16 * flag); };
  return {{halves_of(at(0), at(1)), halves_of(at(2), at(3))}};
}

}  // namespace t10::isa
