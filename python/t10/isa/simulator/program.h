// Code as the simulator runs it: one entry per word, operands resolved, ready to call.
#pragma once

#include <string>
#include <vector>

#include "context.h"

namespace t10::isa {

using Operation = void (*)(Context&, const std::int32_t*);

enum class OperandKind : std::uint8_t { kNumber, kM, kMPair, kA, kAPair, kAQuad };
enum class Role : std::uint8_t { kIn, kOut, kInOut };

struct OperandInfo {
  OperandKind kind;
  Role role;
};

constexpr int kMostOperands = 8;

// A form of an instruction, from its record. `operation` is null where the simulator refuses it.
struct Form {
  const char* mnemonic;
  Operation operation;
  Operation advance;  // of a load or store that steps on: only its step; else null
  std::uint8_t slots;
  bool is_aux;
  bool for_worker;
  bool for_supervisor;
  bool is_control;
  bool is_system;
  bool is_store;
  bool can_repeat;
  int n_operands;
  OperandInfo operands[kMostOperands];
};

// Generated from t10.isa.INSTRUCTIONS by isa/generate.py.
extern const Form kForms[];
extern const int kFormCount;

// Kinds of words of an image (t10.isa.image).
enum WordKind { kSolo, kMain, kAux, kSecond, kData };

// A word: a solo instruction, or the first word of a bundle. `words` is 0 where no instruction begins.
struct Entry {
  Operation main = nullptr;
  Operation aux = nullptr;
  std::int32_t main_operands[5] = {};
  std::int32_t aux_operands[4] = {};
  std::uint8_t out[2] = {kSink, kSink};  // registers of the auxiliary result
  std::uint8_t words = 0;
  std::uint8_t slots = 1;
  std::int16_t main_form = -1;
  std::int16_t aux_form = -1;
  bool is_control = false;
  bool is_bundle = false;
  bool can_repeat = false;
  bool repeat_checked = false;  // rpt: the body keeps the rules
  bool waits_for_workers = false;  // sync
  bool waits_for_weights = false;  // ld64putcs, ld128putcs
  // Of a slice:
  bool counts_alone = false;  // brnzdec: its loop runs the same whatever its counter says
  bool stores = false;
  bool reads_floats = false;
  std::uint16_t live = 0;  // bit n: $mn is read from here on
  std::uint16_t reads = 0, makes = 0, changes = 0;  // registers read, written, read and written
  std::uint16_t addresses = 0;  // of a store, the registers read that say where to
};

class Program {
 public:
  // `words` is n rows of 2 + kMostOperands: kind, form, operands. Throws std::invalid_argument for words that no
  // assembler makes.
  Program(Word base, const std::int32_t* words, const std::int32_t* lines, std::size_t n);

  const Entry* begin() const { return entries_.data(); }
  Word base() const { return base_; }
  Word address_of(const Entry* entry) const { return base_ + 4 * Word(entry - entries_.data()); }

  // The instruction at an address, or null.
  const Entry* find(Word address) const {
    const Word index = (address - base_) / 4;
    if (address % 4 != 0 || index + 1 >= entries_.size() || entries_[index].words == 0) return nullptr;
    return &entries_[index];
  }
  int line_of(Word address) const;

  // The program without what decides neither where control goes nor when (slice.cpp).
  Program slice() const;

  // Words of data: address and value.
  const std::vector<std::pair<Word, Word>>& data() const { return data_; }

 private:
  void decode(std::size_t i, const std::int32_t* row, bool is_aux_half);
  // Lets what is no instruction end a run that gets there.
  static void forbid(Entry& entry);
  void check_repeats();

  Word base_;
  std::vector<Entry> entries_;  // and one past the end where no instruction begins
  std::vector<std::int32_t> lines_;
  std::vector<std::pair<Word, Word>> data_;
};

// What an entry does, for traces: `{ ld64step $a0:1, ... ; fnop }` with mnemonics and operand numbers.
std::string text_of(const Entry& entry);

// Registers an entry wrote, with their values after it: ` $m0=0x3 $a0=0x7fc00000`.
std::string written_by(const Entry& entry, const Context& context);

}  // namespace t10::isa
