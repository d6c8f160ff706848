// What of a program decides where control goes: the rest takes its slots and does nothing.
//
// Registers of the MRF are followed backwards from branches, repetitions, launches, control registers and stores, and
// from where workers begin to where they ended before, as registers outlast a launch. Memory is not followed: stores of
// the ARF are left out, so that a word of the frame that code writes as a float and reads back as an integer would be
// wrong. No codelet does.
#include <cstring>

#include "program.h"

namespace t10::isa {
namespace {

using Registers = std::uint16_t;  // bit n: $mn; those without storage are none

constexpr Registers kStored = 0x0fff;

enum class Flow : std::uint8_t { kNext, kBranch, kJump, kIndirect, kCall, kExit, kRepeat };

Flow flow_of(const Form& form) {
  if (!form.is_control) return Flow::kNext;
  const std::string name = form.mnemonic;
  if (name == "bri") return Flow::kJump;
  if (name == "br") return Flow::kIndirect;
  if (name == "call") return Flow::kCall;
  if (name == "rpt") return Flow::kRepeat;
  return name.compare(0, 4, "exit") == 0 ? Flow::kExit : Flow::kBranch;
}

Registers bits_of(const Form& form, const std::int32_t* operands, bool is_read) {
  Registers all = 0;
  for (int i = 0; i < form.n_operands; i++) {
    const OperandInfo& operand = form.operands[i];
    if (operand.role == (is_read ? Role::kOut : Role::kIn)) continue;
    if (operand.kind == OperandKind::kM && operands[i] < 16) all |= Registers(1u << operands[i]);
    if (operand.kind == OperandKind::kMPair && operands[i] < 16) all |= Registers(3u << operands[i]);
  }
  return all & kStored;
}

// Registers that say where a store goes: all but its first operand.
Registers addresses_of(const Form& form, const std::int32_t* operands) {
  Registers all = 0;
  for (int i = 1; i < form.n_operands; i++)
    if (form.operands[i].kind == OperandKind::kM && operands[i] < 16) all |= Registers(1u << operands[i]);
  return all & kStored;
}

Registers read_and_written(const Form& form, const std::int32_t* operands) {
  Registers all = 0;
  for (int i = 0; i < form.n_operands; i++)
    if (form.operands[i].role == Role::kInOut && operands[i] < 16 && form.operands[i].kind == OperandKind::kM)
      all |= Registers(1u << operands[i]);
  return all & kStored;
}

bool reads_floats(const Form& form) {
  for (int i = 0; i < form.n_operands; i++)
    if (form.operands[i].kind >= OperandKind::kA && form.operands[i].role != Role::kOut) return true;
  return false;
}

class Slice {
 public:
  explicit Slice(std::vector<Entry>& entries, Word base) : entries_(entries), base_(base), live_(entries.size(), 0) {
    for (const Entry& entry : entries_)
      if (const std::size_t named = begins_at(entry); named < entries_.size()) named_.push_back(named);
    // Live registers before every entry, until nothing changes; loops need a few passes.
    for (bool changes = true; changes;) {
      changes = false;
      for (std::size_t i = entries_.size(); i-- > 0;) changes = pass(i) || changes;
    }
  }

  // Takes everything out that decides nothing.
  void apply() {
    for (std::size_t i = 0; i < entries_.size(); i++) {
      Entry& entry = entries_[i];
      if (entry.words == 0) continue;
      entry.aux = nullptr;
      if (entry.waits_for_weights) entry.main = nullptr;
      if (entry.main == nullptr || entry.main_form < 0) continue;
      const Form& form = kForms[entry.main_form];
      const Use use = use_of(i);
      entry.changes = read_and_written(form, entry.main_operands);
      entry.reads = Slice::read(form, entry, use);
      entry.makes = Registers(bits_of(form, entry.main_operands, false) & ~entry.changes);
      if (use == Use::kNone) entry.main = nullptr;
      if (use == Use::kAddress) entry.main = form.advance;
      entry.stores = use == Use::kAll && form.is_store;
      entry.addresses = addresses_of(form, entry.main_operands);
      entry.reads_floats = use == Use::kAll && reads_floats(form);
    }
    for (std::size_t i = 0; i < entries_.size(); i++) {
      Entry& entry = entries_[i];
      entry.counts_alone = counts_alone(i);
      entry.live = live_[i];
    }
  }

 private:
  enum class Use : std::uint8_t { kNone, kAddress, kAll };

  std::size_t index_of(std::int32_t address) const { return (Word(address) - base_) / 4; }

  // The entry whose address an instruction puts into a register, for workers to begin at.
  std::size_t begins_at(const Entry& entry) const {
    if (entry.words == 0 || entry.main_form < 0 || std::strcmp(kForms[entry.main_form].mnemonic, "setzi") != 0)
      return entries_.size();
    return index_of(entry.main_operands[1]);
  }

  Registers at(std::size_t i) const { return i < live_.size() ? live_[i] : 0; }

  // Registers that are read behind an entry.
  Registers behind(std::size_t i) const {
    const Entry& entry = entries_[i];
    const std::size_t next = i + entry.words;
    Registers live = at(next);
    if (entry.main_form >= 0) {
      const Form& form = kForms[entry.main_form];
      const std::int32_t target = form.n_operands > 0 ? entry.main_operands[form.n_operands - 1] : 0;
      switch (flow_of(form)) {
        case Flow::kNext: break;
        case Flow::kBranch: live |= at(index_of(target)); break;
        case Flow::kJump: live = at(index_of(target)); break;
        case Flow::kCall: live |= at(index_of(target)); break;
        case Flow::kIndirect: live = anywhere_; break;
        case Flow::kExit:
          live = 0;
          for (const std::size_t named : named_) live |= at(named);
          break;
        case Flow::kRepeat: live |= at(next + 2 * (std::size_t(entry.main_operands[1]) + 1)); break;
      }
    }
    return i < repeated_.size() && repeated_[i] != 0 ? Registers(live | at(repeated_[i] - 1)) : live;
  }

  Use use_of(std::size_t i) const {
    const Entry& entry = entries_[i];
    const Form& form = kForms[entry.main_form];
    if (form.is_control || form.is_system) return Use::kAll;
    if (form.is_store && !reads_floats(form)) return Use::kAll;
    const Registers live = behind(i);
    Registers wanted = 0;
    for (int k = 0; k < form.n_operands; k++) {
      const OperandInfo& operand = form.operands[k];
      const std::int32_t number = entry.main_operands[k];
      if (operand.role == Role::kIn || number >= 12) continue;
      const bool is_pair = operand.kind == OperandKind::kMPair;
      if (operand.kind != OperandKind::kM && !is_pair) continue;
      if ((live >> number & (is_pair ? 3u : 1u)) == 0) continue;
      if (operand.role == Role::kOut || form.advance == nullptr) return Use::kAll;
      wanted |= Registers(1u << number);
    }
    return wanted != 0 ? Use::kAddress : Use::kNone;
  }

  bool pass(std::size_t i) {
    const Entry& entry = entries_[i];
    if (entry.words == 0 || entry.main_form < 0) {
      const Registers live = entry.words == 0 ? Registers(0) : at(i + entry.words);
      const bool changes = live != live_[i];
      live_[i] = live;
      return changes;
    }
    const Form& form = kForms[entry.main_form];
    if (flow_of(form) == Flow::kRepeat) {
      const std::size_t first = i + entry.words;
      const std::size_t last = first + 2 * std::size_t(entry.main_operands[1]);
      if (last < entries_.size()) {
        repeated_.resize(entries_.size());
        repeated_[last] = first + 1;
      }
    }
    Registers live = behind(i);
    const Use use = use_of(i);
    if (use != Use::kNone) {
      const Registers written = bits_of(form, entry.main_operands, false);
      live = Registers(live & ~written) | read(form, entry, use);
    }
    const bool changes = (live_[i] | live) != live_[i];
    live_[i] |= live;
    anywhere_ |= live;
    return changes;
  }

  // What is read where an operation is kept; of one that only steps on, its address and what that grows by.
  static Registers read(const Form& form, const Entry& entry, Use use) {
    const Registers all = bits_of(form, entry.main_operands, true);
    if (use == Use::kAll) return all;
    Registers stepped = all & bits_of(form, entry.main_operands, false);
    const int last = form.n_operands - 1;
    if (form.operands[last].kind == OperandKind::kM && entry.main_operands[last] < 12)
      stepped |= Registers(1u << entry.main_operands[last]);
    return stepped;
  }

  // Whether a brnzdec closes a loop of straight code and inner loops, none of which looks at its counter.
  bool counts_alone(std::size_t i) const {
    const Entry& entry = entries_[i];
    if (entry.words == 0 || entry.main_form < 0 || std::strcmp(kForms[entry.main_form].mnemonic, "brnzdec") != 0)
      return false;
    const std::size_t first = index_of(entry.main_operands[1]);
    if (first > i || entry.main_operands[0] >= 12) return false;
    const Registers counter = Registers(1u << entry.main_operands[0]);
    for (std::size_t k = first; k < i; k++) {
      const Entry& inner = entries_[k];
      if (inner.words == 0 || inner.main_form < 0 || inner.main == nullptr) continue;
      const Form& form = kForms[inner.main_form];
      const Flow flow = flow_of(form);
      if (flow == Flow::kCall || flow == Flow::kIndirect || flow == Flow::kExit) return false;
      if (flow == Flow::kBranch || flow == Flow::kJump) {
        const std::size_t target = index_of(inner.main_operands[form.n_operands - 1]);
        if (target < first || target > i) return false;
      }
      if (((bits_of(form, inner.main_operands, true) | bits_of(form, inner.main_operands, false)) & counter) != 0)
        return false;
    }
    return true;
  }

  std::vector<Entry>& entries_;
  Word base_;
  std::vector<Registers> live_;
  std::vector<std::size_t> named_;     // entries that workers may begin at
  std::vector<std::size_t> repeated_;  // 1 + the first bundle of the body whose last this is
  Registers anywhere_ = 0;             // live somewhere: what an indirect jump may find
};

}  // namespace

Program Program::slice() const {
  Program result = *this;
  Slice(result.entries_, base_).apply();
  return result;
}

}  // namespace t10::isa
