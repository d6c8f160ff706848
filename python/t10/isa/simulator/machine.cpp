// Workers run one after another to their ends, as nothing they may do lets one depend on another; they take turns, a
// bundle each, where a trace or that order is asked for. The supervisor is timed instruction by instruction.
#include "machine.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace t10::isa {
namespace {

constexpr Word kLink = 10;
constexpr Word kStackPointer = 11;
constexpr Word kPreserved = 9;

inline void execute(Context& c, const Entry& entry) {
  if (entry.aux == nullptr) {
    if (entry.main != nullptr) entry.main(c, entry.main_operands);
    return;
  }
  entry.aux(c, entry.aux_operands);
  if (entry.main != nullptr) entry.main(c, entry.main_operands);
  c.a[entry.out[0]] = c.out[0];
  c.a[entry.out[1]] = c.out[1];
}

[[noreturn]] void bad_repeat() {
  throw Trap(Cause::kInvalidInstruction,
             "rpt: the body must begin at a multiple of 8 and hold only bundles, without control or system instructions");
}

// The body of an rpt: its bundles, the slots of one pass, and whether a slice has left anything of it to do.
struct Repeated {
  Repeated(const Entry* repeat, Word n_bundles) : first(repeat + repeat->words), last(first + 2 * n_bundles) {
    if (!repeat->repeat_checked) bad_repeat();
    for (const Entry* entry = first; entry != last; entry += 2) {
      slots += entry->slots;
      acts = acts || entry->main != nullptr;
    }
  }

  const Entry* first;
  const Entry* last;
  std::int64_t slots = 0;
  bool acts = false;
};

}  // namespace

// A worker between two bundles.
struct Cursor {
  const Entry* at = nullptr;  // null: ended
  const Entry* first = nullptr;  // of a repeated body
  const Entry* last = nullptr;
  Word remaining = 0;
};

Machine::Machine(int n_tiles, Program program, const TileShape& shape, std::uint8_t* memory, bool is_counting)
    : shape_(shape), is_counting_(is_counting), program_(is_counting ? program.slice() : std::move(program)), tiles_(std::size_t(n_tiles)) {
  const Word element = shape.element_bytes;
  if (shape.n_workers < 1 || shape.n_workers > kMostWorkers || shape.end < shape.base || element < 16 ||
      (element & (element - 1)) != 0)
    throw std::invalid_argument("a tile has 1 to 8 workers and memory elements of a power of two");
  for (int number = 0; number < n_tiles; number++) {
    Tile& tile = tiles_[std::size_t(number)];
    tile.number = number;
    tile.machine = this;
    tile.workers.resize(std::size_t(shape.n_workers));
    tile.worker_bases.resize(std::size_t(shape.n_workers));
    for (int n = 0; n < 64; n++) tile.weights.set(n, {{kUnclear, kUnclear}});
    std::uint8_t* bytes = memory + std::size_t(number) * shape.memory_bytes();
    const auto connect = [&](Context& context, int worker) {
      context.connect(shape, bytes);
      context.is_counting = is_counting_;
      context.weights = &tile.weights;
      context.tile = &tile;
      context.worker = worker;
      context.random_state[0] = std::uint64_t(number) * std::uint64_t(shape.n_workers) + std::uint64_t(worker) + 2;
    };
    connect(tile.supervisor, -1);
    for (int worker = 0; worker < shape.n_workers; worker++) connect(tile.workers[std::size_t(worker)], worker);
    for (const auto& [address, value] : program_.data()) tile.supervisor.store32(address, value);
  }
}

const Entry* Machine::entry_at(Word address) const {
  const Entry* entry = program_.find(address);
  if (entry != nullptr) return entry;
  char text[64];
  std::snprintf(text, sizeof text, "no instruction begins at 0x%x", address);
  throw Trap(Cause::kInvalidPc, text, address);
}

void Machine::locate(Trap& trap, const Context& context, const Entry* entry) const {
  if (trap.pc == 0 && entry != nullptr) {
    trap.pc = program_.address_of(entry);
    trap.line = program_.line_of(trap.pc);
    trap.tile = context.tile->number;
    trap.worker = context.worker;
    trap.cycle = context.worker >= 0 ? context.slots * shape_.n_workers : context.tile->now;
  }
  throw trap;
}

void Machine::check_limit(std::int64_t cycles) const {
  if (cycles > options.cycle_limit)
    throw Trap(Cause::kCycleLimit, "still running after " + std::to_string(options.cycle_limit) + " cycles");
}

void Machine::run_worker(Context& c, Word address) {
  const Entry* entry = nullptr;
  std::int64_t slots = 0;
  try {
    entry = entry_at(address);
    for (;;) {
      if (!entry->is_control) {
        execute(c, *entry);
        slots += entry->slots;
        entry += entry->words;
        continue;
      }
      c.action = Action::kNone;
      c.following = program_.address_of(entry + entry->words);
      execute(c, *entry);
      slots += entry->slots;
      switch (c.action) {
        case Action::kNone: entry += entry->words; break;
        case Action::kJump:
          check_limit(slots * shape_.n_workers);
          entry = entry_at(c.target);
          break;
        case Action::kExit: c.slots = slots; return;
        case Action::kRepeat: {
          const Repeated body(entry, c.n_bundles);
          slots += body.slots * c.count;
          check_limit(slots * shape_.n_workers);
          for (Word i = c.count; i != 0; i--)
            for (entry = body.first; entry != body.last; entry += 2) execute(c, *entry);
          entry = body.last;
        }
      }
    }
  } catch (Trap& trap) {
    c.slots = slots;
    locate(trap, c, entry);
  }
}

// Registers and words of the counter's own memory that hold data.
struct Taint {
  Word registers = 0;
  std::vector<Word> words;  // addresses: a few that values are spilled to

  bool any() const { return registers != 0 || !words.empty(); }

  // After an instruction of a slice; data that decides anything is a trap. Returns whether it stored what is no data.
  bool follow(const Context& c, const Entry& entry) {
    const bool is_data = (registers & entry.reads) != 0;
    const bool is_moved = entry.stores ? (registers & entry.addresses) != 0 : is_data;
    const bool is_inside = c.touched != kNowhere && !c.was_outside;
    if (entry.is_control ? is_data : entry.stores && is_inside && is_moved)
      throw Trap(Cause::kInvalidOperation, text_of(entry) + " depends on data");
    const auto word = std::find(words.begin(), words.end(), c.touched & ~Word(3));
    const bool was_data = is_inside && word != words.end();
    // Integers are stored by whole words.
    if (entry.stores && is_inside && is_data && !was_data) words.push_back(c.touched);
    if (entry.stores && is_inside && !is_data && was_data) words.erase(word);
    const bool makes = is_data || entry.reads_floats || c.was_outside || was_data;
    registers = (registers & ~Word(entry.makes)) | (makes ? entry.makes : 0) | (is_moved ? entry.changes : 0);
    c.was_outside = false;
    return entry.stores && is_inside && !is_data;
  }
};

// The same of a slice. A loop that comes back as it was, but for its counter, is taken at once.
void Machine::count_worker(Context& c, Word address) {
  struct Turn {
    const Entry* at = nullptr;
    Word counter;
    std::int64_t slots;
    std::int64_t n_stores;
    Word data;
    std::array<Word, 12> registers;
  };
  std::array<Turn, 16> turns;
  const Entry* entry = nullptr;
  std::int64_t slots = 0;
  std::int64_t n_stores = 0;
  Taint taint;
  const auto act = [&](const Entry& one) {
    c.touched = kNowhere;
    one.main(c, one.main_operands);
    const bool is_plain = !taint.any() && !c.was_outside && !one.reads_floats;
    n_stores += is_plain ? one.stores : taint.follow(c, one);
  };
  try {
    entry = entry_at(address);
    for (;;) {
      slots += entry->slots;
      if (!entry->is_control) {
        if (entry->main != nullptr) act(*entry);
        entry += entry->words;
        continue;
      }
      c.action = Action::kNone;
      c.following = program_.address_of(entry + entry->words);
      act(*entry);
      switch (c.action) {
        case Action::kNone: entry += entry->words; break;
        case Action::kJump: {
          check_limit(slots * shape_.n_workers);
          const Entry* target = entry_at(c.target);
          if (entry->counts_alone) {
            Turn& turn = turns[std::size_t(entry - program_.begin()) % turns.size()];
            const Word counter = Word(entry->main_operands[0]);
            bool is_same = turn.at == entry && turn.counter == c.m[counter] + 1 && turn.n_stores == n_stores;
            is_same = is_same && turn.data == taint.registers;
            const Word decides = target->live & ~turn.data;
            for (Word n = 0; is_same && n < 12; n++)
              is_same = n == counter || (decides >> n & 1) == 0 || turn.registers[n] == c.m[n];
            if (is_same) {
              slots += (slots - turn.slots) * (std::int64_t(c.m[counter]) + 1);
              check_limit(slots * shape_.n_workers);
              c.m[counter] = 0;
              turn.at = nullptr;
              entry += entry->words;
              break;
            }
            turn = {entry, c.m[counter], slots, n_stores, taint.registers, {}};
            std::copy(c.m, c.m + 12, turn.registers.begin());
          }
          entry = target;
          break;
        }
        case Action::kExit: c.slots = slots; return;
        case Action::kRepeat: {
          const Repeated body(entry, c.n_bundles);
          slots += body.slots * c.count;
          check_limit(slots * shape_.n_workers);
          for (Word i = body.acts ? c.count : 0; i != 0; i--)
            for (entry = body.first; entry != body.last; entry += 2)
              if (entry->main != nullptr) act(*entry);
          entry = body.last;
        }
      }
    }
  } catch (Trap& trap) {
    c.slots = slots;
    locate(trap, c, entry);
  }
}

// One bundle of a worker; returns whether it goes on.
bool Machine::step(Context& c, Cursor& cursor) {
  const Entry* entry = cursor.at;
  try {
    check_limit(c.slots * shape_.n_workers);
    c.action = Action::kNone;
    c.following = program_.address_of(entry + entry->words);
    execute(c, *entry);
    if (trace) write_trace(c, entry, c.slots * shape_.n_workers);
    c.slots += entry->slots;
    cursor.at = entry + entry->words;
    if (c.action == Action::kExit) cursor.at = nullptr;
    if (c.action == Action::kJump) cursor.at = entry_at(c.target);
    if (c.action == Action::kRepeat) {
      if (!entry->repeat_checked) bad_repeat();
      cursor.first = cursor.at;
      cursor.last = cursor.first + 2 * c.n_bundles;
      cursor.remaining = c.count;
      if (c.count == 0) cursor.at = cursor.last;
    }
    if (cursor.remaining != 0 && cursor.at == cursor.last && --cursor.remaining != 0) cursor.at = cursor.first;
  } catch (Trap& trap) {
    locate(trap, c, entry);
  }
  return cursor.at != nullptr;
}

// All workers in turns. The next is the one with the fewest slots issued: those with equal numbers in order.
void Machine::run_stepped(Tile& tile, Word address) {
  Cursor cursors[kMostWorkers];
  for (int w = 0; w < shape_.n_workers; w++) {
    tile.workers[std::size_t(w)].slots = 0;
    cursors[w].at = entry_at(address);
  }
  for (;;) {
    int next = -1;
    for (int w = 0; w < shape_.n_workers; w++)
      if (cursors[w].at != nullptr && (next < 0 || tile.workers[std::size_t(w)].slots < tile.workers[std::size_t(next)].slots)) next = w;
    if (next < 0) return;
    step(tile.workers[std::size_t(next)], cursors[next]);
  }
}

void Machine::launch(Tile& tile, Word entry, Word state, Word stride_words) {
  if (state % 4 != 0) throw Trap(Cause::kInvalidOperation, "the address of a worker's state is not a multiple of 4");
  WriteWatch watches[kMostWorkers];
  if (options.watch_writes) writers_.assign(tile.supervisor.memory_bytes / 4, 0);
  for (int w = 0; w < shape_.n_workers; w++) {
    Context& worker = tile.workers[std::size_t(w)];
    worker.m[12] = tile.worker_bases[std::size_t(w)];
    worker.m[13] = state + 4 * stride_words * Word(w);
    worker.set_fp_control(tile.fp_initial);
    watches[w] = {writers_.data(), w};
    worker.watch = options.watch_writes ? &watches[w] : nullptr;
  }
  if (options.round_robin || trace) {
    run_stepped(tile, entry);
  } else {
    for (Context& worker : tile.workers) is_counting_ ? count_worker(worker, entry) : run_worker(worker, entry);
  }
  std::int64_t least = tile.workers[0].slots;
  std::int64_t most = least;
  for (Context& worker : tile.workers) {
    worker.watch = nullptr;
    least = std::min(least, worker.slots);
    most = std::max(most, worker.slots);
    bundles_ += worker.slots;
  }
  tile.now += kResultClocks;
  tile.first_exit = tile.now + shape_.n_workers * least;
  tile.last_exit = tile.now + shape_.n_workers * most;
  tile.is_launched = true;
}

// One instruction of the supervisor; returns the next, or null after its return. `ready`: when registers are.
const Entry* Machine::supervise(Tile& tile, const Entry* entry, std::int64_t* ready) {
  Context& c = tile.supervisor;
  if (entry->is_bundle || entry->main_form < 0 || !kForms[entry->main_form].for_supervisor) {
    if (entry->words == 0) execute(c, *entry);
    throw Trap(Cause::kInvalidInstruction, text_of(*entry) + " is not for the supervisor");
  }
  const Form& form = kForms[entry->main_form];
  std::int64_t issue = tile.now;
  if (tile.is_launched && !entry->waits_for_workers) issue = std::max(issue, tile.first_exit);
  if (entry->waits_for_weights) issue = std::max(issue, tile.weights_ready);
  for (int i = 0; i < form.n_operands; i++) {
    if (form.operands[i].kind != OperandKind::kM || form.operands[i].role == Role::kOut) continue;
    issue = std::max(issue, ready[entry->main_operands[i]]);
  }
  tile.now = issue;
  check_limit(issue);
  c.action = Action::kNone;
  c.following = program_.address_of(entry + entry->words);
  execute(c, *entry);
  if (c.was_outside) throw Trap(Cause::kInvalidOperation, text_of(*entry) + " depends on data");
  if (trace) write_trace(c, entry, issue);
  bundles_ += 1;
  tile.now = std::max(tile.now, issue + 1);
  for (int i = 0; i < form.n_operands; i++)
    if (form.operands[i].kind == OperandKind::kM && form.operands[i].role != Role::kIn)
      ready[entry->main_operands[i]] = issue + kResultClocks;
  if (c.action == Action::kJump) {
    tile.now = issue + kResultClocks;
    return c.target == kReturnAddress ? nullptr : entry_at(c.target);
  }
  return entry + entry->words;
}

std::int64_t Machine::run_supervisor(Tile& tile, Word address, Word state) {
  Context& c = tile.supervisor;
  std::int64_t ready[20] = {};
  c.m[0] = state;
  c.m[kLink] = kReturnAddress;
  c.m[kStackPointer] = options.stack_top - Word(shape_.n_workers) * options.worker_stack_bytes;
  const Word preserved[3] = {c.m[kPreserved], c.m[kLink], c.m[kStackPointer]};
  const Entry* entry = nullptr;
  const Entry* last = nullptr;
  try {
    for (entry = entry_at(address); entry != nullptr; entry = supervise(tile, entry, ready)) last = entry;
    if (tile.is_launched) throw Trap(Cause::kExecution, "supervisor code returned before sync");
    for (Word i = 0; i < 3; i++)
      if (c.m[kPreserved + i] != preserved[i])
        throw Trap(Cause::kNotPreserved, "supervisor code changed $m" + std::to_string(kPreserved + i));
  } catch (Trap& trap) {
    locate(trap, c, entry != nullptr ? entry : last);
  }
  return tile.now;
}

std::int64_t Machine::run_vertex(int number, Word entry, Word state, VertexKind kind) {
  Tile& tile = this->tile(number);
  tile.now = tile.weights_ready = 0;
  tile.is_launched = false;
  if (options.stack_top != 0)
    for (int w = 0; w < shape_.n_workers; w++)
      tile.worker_bases[std::size_t(w)] = options.stack_top - Word(w) * options.worker_stack_bytes;
  if (kind == VertexKind::kSupervisor) return run_supervisor(tile, entry, state);
  launch(tile, entry, state, 0);
  tile.is_launched = false;
  return tile.last_exit + shape_.n_workers;
}

std::size_t Machine::run_vertices(const std::int32_t* tiles, const std::uint32_t* entries, const std::uint32_t* states,
                                  std::size_t n, VertexKind kind, std::int64_t* cycles) {
  trap_.reset();
  for (std::size_t i = 0; i < n; i++) {
    try {
      cycles[i] = run_vertex(tiles[i], entries[i], states[i], kind);
    } catch (const Trap& trap) {
      trap_ = trap;
      if (trap_->pc == 0) trap_->tile = tiles[i];
      return i;
    }
  }
  return n;
}

void Machine::write_trace(const Context& c, const Entry* entry, std::int64_t cycle) {
  char head[64];
  const char* who = c.worker < 0 ? "s" : "w";
  std::snprintf(head, sizeof head, "%lld tile %d %s%d 0x%x ", static_cast<long long>(cycle), c.tile->number, who,
                c.worker < 0 ? 0 : c.worker, program_.address_of(entry));
  trace(head + text_of(*entry) + " |" + written_by(*entry, c));
}

}  // namespace t10::isa
