// Tiles that run code: memories, registers, the supervisor and its workers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "program.h"

namespace t10::isa {

struct Tile {
  int number = 0;
  Context supervisor;
  std::vector<Context> workers;
  Weights weights;
  std::vector<Word> worker_bases;
  Word fp_initial = 0;      // FP_ICTL
  Word weights_from = 0;    // CCCSLOAD
  bool is_launched = false; // workers were launched and not yet synchronised with
  // Clocks of the supervisor since its vertex began.
  std::int64_t now = 0;
  std::int64_t weights_ready = 0;
  std::int64_t first_exit = 0;
  std::int64_t last_exit = 0;
  class Machine* machine = nullptr;
};

enum class VertexKind : std::uint8_t { kMulti, kSupervisor };

// How a vertex is run.
struct Options {
  std::int64_t cycle_limit = std::int64_t(1) << 40;
  bool round_robin = false;      // workers take turns, a bundle each, instead of running one after another
  bool watch_writes = false;     // trap where two workers write into one word
  Word stack_top = 0;            // workers' stacks below it, the supervisor's below theirs
  Word worker_stack_bytes = 0;
};

class Machine {
 public:
  // `memory` is n_tiles * shape.memory_bytes() bytes that outlive the machine. Throws std::invalid_argument for a shape
  // of no tile. A machine that counts runs a slice of the program; memory elsewhere holds data, which no branch may read.
  Machine(int n_tiles, Program program, const TileShape& shape, std::uint8_t* memory, bool is_counting = false);

  // Runs one vertex; returns its cycles. Throws Trap.
  std::int64_t run_vertex(int tile, Word entry, Word state, VertexKind kind);

  // Runs one vertex on each of `n` tiles; returns how many ended well. The trap that stopped the next is kept.
  std::size_t run_vertices(const std::int32_t* tiles, const std::uint32_t* entries, const std::uint32_t* states,
                           std::size_t n, VertexKind kind, std::int64_t* cycles);

  Tile& tile(int number) { return tiles_.at(std::size_t(number)); }
  int n_tiles() const { return int(tiles_.size()); }
  const TileShape& shape() const { return shape_; }
  const Program& program() const { return program_; }
  const std::optional<Trap>& trap() const { return trap_; }
  std::int64_t bundles() const { return bundles_; }

  Options options;
  // Called with a line of text before every bundle, if set.
  std::function<void(const std::string&)> trace;

  // Workers from an entry to their ends; returns after all ended (for runall).
  void launch(Tile& tile, Word entry, Word state, Word stride_words);

 private:
  std::int64_t run_supervisor(Tile& tile, Word entry, Word state);
  void run_worker(Context& worker, Word entry);
  void count_worker(Context& worker, Word entry);
  void run_stepped(Tile& tile, Word entry);
  bool step(Context& worker, struct Cursor& cursor);
  const Entry* supervise(Tile& tile, const Entry* entry, std::int64_t* ready);
  const Entry* entry_at(Word address) const;
  [[noreturn]] void locate(Trap& trap, const Context& context, const Entry* entry) const;
  void write_trace(const Context& context, const Entry* entry, std::int64_t cycle);
  void check_limit(std::int64_t cycles) const;

  TileShape shape_;
  bool is_counting_;
  Program program_;
  std::vector<Tile> tiles_;
  std::vector<std::uint8_t> writers_;
  std::optional<Trap> trap_;
  std::int64_t bundles_ = 0;
};

}  // namespace t10::isa
