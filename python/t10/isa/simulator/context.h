// What one worker or the supervisor of a tile sees: registers, accumulators, memory, control.
#pragma once

#include <cstring>

#include "floats.h"

namespace t10::isa {

// Weights of the matrix engine (CWEI): raw, and as the floats that its instructions multiply with.
struct Weights {
  Pair raw_words[64];       // [4 * unit + phase]
  float halves[4][4][16];   // [phase][lane][unit]
  float words[8][16];       // [2 * phase + word][unit]

  void set(int n, Pair value);
  void clear() { *this = Weights{}; }
};

struct Tile;

// Which workers wrote a word during a launch; watches for two.
struct WriteWatch {
  std::uint8_t* writers;  // per word of the memory: bit w for worker w
  int worker;
};

enum class Action : std::uint8_t { kNone, kJump, kExit, kRepeat };

constexpr int kSink = 16;  // writes to registers without storage go here

constexpr Word kNowhere = ~Word(0);

constexpr Word kFirstPair = 1u << 31;  // number of the first bank of the interleaved region

struct Context {
  Word m[20] = {};
  Word a[20] = {};
  Word out[2] = {};  // results of the auxiliary half until the bundle ends

  std::uint8_t* memory = nullptr;  // byte at memory_base
  Word memory_base = 0;
  Word memory_bytes = 0;
  Word interleaved_base = 0;
  int element_bits = 0;  // an element is 1 << element_bits bytes
  int n_workers = 0;
  Word overflow16 = kLargest16;
  WriteWatch* watch = nullptr;
  // Where cycles are counted: memory elsewhere is none of the counter's, and what is read there is data.
  bool is_counting = false;
  mutable bool was_outside = false;
  mutable Word touched = kNowhere;  // the last access

  float even[16];  // AACC[2i]
  float odd[16];   // AACC[2i + 1], each half of it turned by `head`
  int head[2] = {};  // of the matrix engine's queues: Q[0] of set s is odd[8s + 2 * head[s]]
  const Weights* weights = nullptr;
  Word tas = 0;
  Word fp_control = 0;
  Pair rows[4] = {};        // of the block being transposed
  Pair rows_before[4] = {};
  std::uint64_t random_state[2] = {1, 0};
  Word repeat_count = 0;
  Word debug_data = 0;

  Tile* tile = nullptr;
  int worker = -1;  // -1: the supervisor
  Action action = Action::kNone;
  bool status = false;
  Word target = 0;     // of a jump
  Word following = 0;  // address of the next instruction, where the current one is of control
  Word count = 0;      // of rpt: repetitions and bundles of the body
  Word n_bundles = 0;
  std::int64_t slots = 0;

  Context();
  // Takes the memory, whose first byte is at `shape.base`, and the rest of the shape.
  void connect(const TileShape& shape, std::uint8_t* bytes);

  // Turns the queues so that odd[i] is AACC[2i + 1].
  void settle();

  // Memory. Errors are out of line: none of it costs where nothing is wrong.
  [[noreturn]] void bad_address(Word address, Word size) const;
  std::uint8_t* outside(Word address, Word size) const;  // counting: what lies elsewhere is data
  [[noreturn]] void conflict(Word first, Word second) const;
  [[noreturn]] void shared_word(Word address) const;

  std::uint8_t* at(Word address, Word size) const {
    touched = address;
    const Word offset = address - memory_base;
    if (offset > memory_bytes - size || (offset & (size - 1)) != 0) return outside(address, size);
    return memory + offset;
  }
  Word load8(Word address) const { return *at(address, 1); }
  Word load16(Word address) const {
    std::uint16_t value;
    std::memcpy(&value, at(address, 2), 2);
    return value;
  }
  Word load32(Word address) const {
    Word value;
    std::memcpy(&value, at(address, 4), 4);
    return value;
  }
  Pair load64(Word address) const {
    Pair value;
    std::memcpy(&value, at(address, 8), 8);
    return value;
  }
  Quad load128(Word address) const {
    if (address < interleaved_base) bad_address(address, 16);
    Quad value;
    std::memcpy(&value, at(address, 16), 16);
    return value;
  }
  void wrote(Word address) {
    std::uint8_t& writers = watch->writers[(address - memory_base) / 4];
    writers = std::uint8_t(writers | 1 << watch->worker);
    if ((writers & (writers - 1)) != 0) shared_word(address);
  }
  void store32(Word address, Word value) {
    std::memcpy(at(address, 4), &value, 4);
    if (watch != nullptr) wrote(address);
  }
  void store64(Word address, Pair value) {
    std::memcpy(at(address, 8), &value, 8);
    if (watch == nullptr) return;
    wrote(address);
    wrote(address + 4);
  }

  // Banks: one element each in region 0; pairs of them in region 1, where bit 3 of the address chooses.
  Word bank(Word address) const {
    if (address < interleaved_base) return (address - memory_base) >> element_bits;
    return kFirstPair + ((address - interleaved_base) >> (element_bits + 1)) * 2 + (address >> 3 & 1);
  }
  void apart(Word first, Word second) const {
    if (bank(first) == bank(second)) conflict(first, second);
  }

  // Control.
  void jump(Word to) {
    action = Action::kJump;
    target = to;
  }
  Word next_address() const { return following; }
  void exit(bool value) {
    action = Action::kExit;
    status = value;
  }
  void repeat(Word times, Word bundles) {
    action = Action::kRepeat;
    count = times;
    n_bundles = bundles;
  }
  [[noreturn]] void trap(Word number) const;

  // Control registers, and what only the supervisor does.
  Word get(Word csr) const;
  void put(Word csr, Word value);
  Word uget(Word csr) const;
  void uput(Word csr, Word value);
  void set_fp_control(Word value);
  void run_all(Word entry, Word state, Word stride_words);
  void sync(Word zone);
  void load_weights(Word n, int n_words);
  std::uint64_t random_bits();

  // Arithmetic that depends on control registers.
  template <class V, class F>
  V halves(const V& x, const V& y, F f) const {
    return half_lanes(x, y, f, overflow16);
  }
  template <class F>
  Word half_functions(Word x, F f) const {
    Word h[2];
    for (int i = 0; i < 2; i++) {
      const double in = half(x, i);
      double value = f(in);
      // Beyond the range of double is an overflow like any other, unless it is a pole such as ln(0).
      if (std::isinf(value) && value > 0 && std::isfinite(in)) value = 1e30;
      h[i] = half_bits(value, overflow16);
    }
    return halves_of(h[0], h[1]);
  }
  template <class V>
  V clamp_halves(const V& x, Word limits) const {
    float f[kHalves<V>];
    widen(x, f);
    for (int i = 0; i < kHalves<V>; i++) f[i] = Min()(Max()(f[i], half(limits, 0)), half(limits, 1));
    return narrow<V>(f, overflow16);
  }
  template <class V>
  V centred_halves(const V& x) const {
    V d{};
    for (int i = 0; i < kWords<V>; i++) {
      const Word both = word(x, i);
      const Word low = half_bits((double(both & 0xffff) + 0.5) / 65536.0 - 0.5, overflow16);
      set_word(d, i, halves_of(low, half_bits((double(both >> 16) + 0.5) / 65536.0 - 0.5, overflow16)));
    }
    return d;
  }
  Word narrowed(Word x) const { return half_bits(number(x), overflow16); }
  Word narrowed(Pair x) const {
    const float f[2] = {number(x.w[0]), number(x.w[1])};
    return narrow<Word>(f, overflow16);
  }
  Pair narrowed(const Quad& x) const {
    const float f[4] = {number(x.w[0]), number(x.w[1]), number(x.w[2]), number(x.w[3])};
    return narrow<Pair>(f, overflow16);
  }
  Word integral(Word x, Word mode) const;
  Word signed_integer(Word x) const;
  Word unsigned_integer(Word x) const;

  // Accumulators.
  template <class V, class F>
  void add_halves(const V& x, F f) {
    for (int i = 0; i < kHalves<V>; i++) even[i] += f(half(x, i));
  }
  template <class V, class F>
  void add_words(const V& x, F f) {
    for (int i = 0; i < kWords<V>; i++) even[i] += f(number(word(x, i)));
  }
  void add_products(Pair x, Pair y, int n) {
    for (int i = 0; i < n; i++) even[i] += number(x.w[i]) * number(y.w[i]);
  }
  void add_dots(Pair x, Pair y, int n) {
    for (int i = 0; i < n; i++) {
      even[i] += half(x, 2 * i) * half(y, 2 * i);
      even[i] += half(x, 2 * i + 1) * half(y, 2 * i + 1);
    }
  }
  Quad accumulators() const { return {{raw(even[0]), raw(even[1]), raw(even[2]), raw(even[3])}}; }
  Pair axpy(Pair x, Pair y);
  Pair mix(Pair x, Pair y);
  Pair drain(Pair s, Word chain);
  Pair transpose_in(Pair x, Pair y, Word flag);
  Pair transpose_out(Word flag) const;

  // The matrix engine (matrix_engine.h).
  Pair amp16(Pair x, Pair partials, Word flags);
  Pair amp16v4(Pair x, Pair partials, Word flags);
  Pair amp32(Word x, Pair partials, Word flags);
  Pair amp32v2(Word x, Pair partials, Word flags);
  Pair slic16(Pair x, Pair partials, Word flags, int set);
};

}  // namespace t10::isa
