// Words of an image into entries: registers without storage become sinks, rules that do not change are checked once.
#include "program.h"

#include <cstdio>

namespace t10::isa {
namespace {

[[noreturn]] void refuse(Context&, const std::int32_t* operands) {
  throw Trap(Cause::kInvalidInstruction,
             std::string(kForms[operands[0]].mnemonic) + " is not simulated: the reference leaves its effect open");
}

[[noreturn]] void no_instruction(Context&, const std::int32_t*) {
  throw Trap(Cause::kInvalidPc, "control runs on into what is no instruction");
}

[[noreturn]] void writes_twice(Context&, const std::int32_t* operands) {
  throw Trap(Cause::kInvalidOperation, std::string(kForms[operands[0]].mnemonic) + " writes one register twice");
}

int registers_of(OperandKind kind) {
  switch (kind) {
    case OperandKind::kNumber: return 0;
    case OperandKind::kM:
    case OperandKind::kA: return 1;
    case OperandKind::kMPair:
    case OperandKind::kAPair: return 2;
    case OperandKind::kAQuad: return 4;
  }
  return 0;
}

bool is_m(OperandKind kind) { return kind == OperandKind::kM || kind == OperandKind::kMPair; }
int first_without_storage(OperandKind kind) { return is_m(kind) ? 12 : 8; }

void check_register(const Form& form, const OperandInfo& operand, std::int32_t value) {
  const int n = registers_of(operand.kind);
  if (n == 0) return;
  if (value < 0 || value + n > 16 || value % n != 0)
    throw std::invalid_argument(std::string(form.mnemonic) + ": register " + std::to_string(value) +
                                " cannot be the first of " + std::to_string(n));
}

// Registers written, one bit each: the MRF below the ARF.
std::uint32_t written(const Form& form, const std::int32_t* operands, bool& twice) {
  std::uint32_t all = 0;
  for (int i = 0; i < form.n_operands; i++) {
    const OperandInfo& operand = form.operands[i];
    const int n = registers_of(operand.kind);
    if (n == 0 || operand.role == Role::kIn || operands[i] >= first_without_storage(operand.kind)) continue;
    const std::uint32_t mask = ((1u << n) - 1) << operands[i] << (is_m(operand.kind) ? 0 : 16);
    twice = twice || (all & mask) != 0;
    all |= mask;
  }
  return all;
}

}  // namespace

const char* cause_name(Cause cause) {
  switch (cause) {
    case Cause::kNone: return "NONE";
    case Cause::kInvalidAddress: return "INVALID_ADDR";
    case Cause::kConflict: return "CONFLICT";
    case Cause::kInvalidInstruction: return "INVALID_INSTR";
    case Cause::kInvalidOperation: return "INVALID_OP";
    case Cause::kInvalidPc: return "INVALID_PC";
    case Cause::kBreakpoint: return "PBRK";
    case Cause::kExecution: return "EXERR";
    case Cause::kSharedWord: return "SHARED_WORD";
    case Cause::kNotPreserved: return "NOT_PRESERVED";
    case Cause::kCycleLimit: return "CYCLE_LIMIT";
  }
  return "";
}

Program::Program(Word base, const std::int32_t* words, const std::int32_t* lines, std::size_t n)
    : base_(base), entries_(n + 1), lines_(lines, lines + n) {
  if (base % 4 != 0) throw std::invalid_argument("code must begin at a multiple of 4");
  for (std::size_t i = 0; i < n; i++) {
    const std::int32_t* row = words + i * (2 + kMostOperands);
    switch (row[0]) {
      case kSolo:
        entries_[i].words = 1;
        decode(i, row, false);
        break;
      case kMain:
        if (i + 1 == n || row[2 + kMostOperands] != kAux)
          throw std::invalid_argument("a bundle's first word without its second");
        entries_[i].words = 2;
        entries_[i].is_bundle = true;
        decode(i, row, false);
        decode(i, row + 2 + kMostOperands, true);
        break;
      case kSecond:
        if (i == 0 || entries_[i - 1].words == 0) throw std::invalid_argument("a second word without its first");
        entries_[i - 1].words = 2;
        entries_[i - 1].slots = 2;
        break;
      case kData:
        data_.emplace_back(base + 4 * Word(i), Word(row[2]));
        forbid(entries_[i]);
        break;
      case kAux: break;
      default: throw std::invalid_argument("unknown kind of word " + std::to_string(row[0]));
    }
  }
  forbid(entries_[n]);
  check_repeats();
}

void Program::forbid(Entry& entry) {
  entry.main = no_instruction;
  entry.is_control = true;
}

void Program::decode(std::size_t i, const std::int32_t* row, bool is_aux_half) {
  Entry& entry = entries_[i];
  const std::int32_t number = row[1];
  if (number < 0 || number >= kFormCount) throw std::invalid_argument("unknown form " + std::to_string(number));
  const Form& form = kForms[number];
  if (entry.is_bundle && form.is_aux != is_aux_half)
    throw std::invalid_argument(std::string(form.mnemonic) + " cannot be this half of a bundle");
  std::int32_t* operands = form.is_aux ? entry.aux_operands : entry.main_operands;
  int n_results = 0;
  for (int k = 0; k < form.n_operands; k++) {
    const OperandInfo& operand = form.operands[k];
    check_register(form, operand, row[2 + k]);
    operands[k] = row[2 + k];
    if (operand.role != Role::kOut) continue;
    if (row[2 + k] >= first_without_storage(operand.kind)) operands[k] = kSink;
    if (!form.is_aux) continue;
    n_results = registers_of(operand.kind);
    for (int r = 0; r < n_results; r++) entry.out[r] = std::uint8_t(operands[k] == kSink ? kSink : operands[k] + r);
  }
  Operation operation = form.operation;
  bool twice = false;
  const std::uint32_t writes = written(form, row + 2, twice);
  if (is_aux_half) {
    const Form& main = kForms[entry.main_form];
    twice = twice || (writes & written(main, row - kMostOperands, twice)) != 0;
  }
  if (operation == nullptr || twice) {
    operation = operation == nullptr ? Operation(refuse) : Operation(writes_twice);
    operands[0] = number;
  }
  (form.is_aux ? entry.aux : entry.main) = operation;
  (form.is_aux ? entry.aux_form : entry.main_form) = std::int16_t(number);
  const std::string mnemonic = form.mnemonic;
  entry.waits_for_workers = mnemonic == "sync";
  entry.waits_for_weights = mnemonic == "ld64putcs" || mnemonic == "ld128putcs";
  entry.slots = is_aux_half && entry.slots > form.slots ? entry.slots : form.slots;
  entry.is_control = entry.is_control || form.is_control;
  entry.can_repeat = is_aux_half ? entry.can_repeat && form.can_repeat : form.can_repeat;
}

// A body of rpt is bundles only, none of control or of the system, and begins at a multiple of 8.
void Program::check_repeats() {
  for (std::size_t i = 0; i + 1 < entries_.size(); i++) {
    Entry& entry = entries_[i];
    if (entry.words == 0 || entry.main_form < 0 || std::string(kForms[entry.main_form].mnemonic) != "rpt") continue;
    const std::size_t first = i + entry.words;
    const std::size_t last = first + 2 * (std::size_t(entry.main_operands[1]) + 1);
    if (last >= entries_.size() || (base_ + 4 * first) % 8 != 0) continue;
    bool good = true;
    for (std::size_t k = first; k < last; k += 2) good = good && entries_[k].is_bundle && entries_[k].can_repeat;
    entry.repeat_checked = good;
  }
}

int Program::line_of(Word address) const {
  const Word index = (address - base_) / 4;
  return index < lines_.size() ? lines_[index] : 0;
}

std::string text_of(const Entry& entry) {
  const auto half = [](std::int16_t number, const std::int32_t* operands) {
    const Form& form = kForms[number];
    std::string text = form.mnemonic;
    for (int i = 0; i < form.n_operands; i++) {
      const int n = registers_of(form.operands[i].kind);
      text += i == 0 ? " " : ", ";
      if (n == 0) {
        text += std::to_string(operands[i]);
        continue;
      }
      text += is_m(form.operands[i].kind) ? "$m" : "$a";
      text += operands[i] == kSink ? "-" : std::to_string(operands[i]);
      if (n > 1 && operands[i] != kSink) text += ":" + std::to_string(operands[i] + n - 1);
    }
    return text;
  };
  if (!entry.is_bundle)
    return entry.main_form >= 0 ? half(entry.main_form, entry.main_operands) : half(entry.aux_form, entry.aux_operands);
  return "{ " + half(entry.main_form, entry.main_operands) + " ; " + half(entry.aux_form, entry.aux_operands) + " }";
}

std::string written_by(const Entry& entry, const Context& context) {
  std::string text;
  const auto half = [&](std::int16_t number, const std::int32_t* operands) {
    if (number < 0) return;
    const Form& form = kForms[number];
    for (int i = 0; i < form.n_operands; i++) {
      const OperandInfo& operand = form.operands[i];
      const int n = registers_of(operand.kind);
      if (n == 0 || operand.role == Role::kIn || operands[i] >= first_without_storage(operand.kind)) continue;
      for (int r = operands[i]; r < operands[i] + n; r++) {
        char one[32];
        const bool is_main = is_m(operand.kind);
        std::snprintf(one, sizeof one, " $%c%d=0x%x", is_main ? 'm' : 'a', r, is_main ? context.m[r] : context.a[r]);
        text += one;
      }
    }
  };
  half(entry.main_form, entry.main_operands);
  half(entry.aux_form, entry.aux_operands);
  return text;
}

}  // namespace t10::isa
