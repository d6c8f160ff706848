// Tiles that execute the assembly of vertices on the instruction-set simulator. One translation unit includes this.
#pragma once

#include "registry.hpp"

#include <machine.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

namespace poplar_host {

// Code as the assembler leaves it (t10.sim.poplar_host.code writes it): "T10IMAGE"; base address, number of words,
// largest stack of a worker, number of symbols; the shape of a tile; rows of words; lines; for every symbol its address, the length of its
// name, and its name padded to words.
class Code {
public:
  explicit Code(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    char magic[8];
    std::uint32_t head[9];
    file.read(magic, sizeof magic).read(reinterpret_cast<char *>(head), sizeof head);
    if (!file || std::memcmp(magic, "T10IMAGE", 8) != 0)
      throw poplar::poplar_error(path + " holds no code");
    base = head[0];
    worker_stack_bytes = head[2];
    shape = {head[4], head[5], head[6], head[7], static_cast<int>(head[8])};
    words.resize(std::size_t(head[1]) * (2 + t10::isa::kMostOperands));
    lines.resize(head[1]);
    file.read(reinterpret_cast<char *>(words.data()), static_cast<std::streamsize>(4 * words.size()));
    file.read(reinterpret_cast<char *>(lines.data()), static_cast<std::streamsize>(4 * lines.size()));
    for (std::uint32_t i = 0; i < head[3]; ++i) {
      std::uint32_t entry[2];
      file.read(reinterpret_cast<char *>(entry), sizeof entry);
      std::string name((entry[1] + 3) / 4 * 4, '\0');
      file.read(name.data(), static_cast<std::streamsize>(name.size()));
      symbols[name.substr(0, entry[1])] = entry[0];
    }
    if (!file)
      throw poplar::poplar_error(path + " is cut off");
  }

  std::uint32_t base = 0, worker_stack_bytes = 0;
  t10::isa::TileShape shape{};
  std::vector<std::int32_t> words, lines;
  std::map<std::string, std::uint32_t> symbols;
};

class SimulatedTiles : public Tiles {
public:
  explicit SimulatedTiles(const std::string &path) : code(path) {}

  void begin(unsigned n_tiles) override {
    memory.reset(static_cast<char *>(std::aligned_alloc(ALIGNMENT, (std::size_t(n_tiles) * bytes() + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)));
    if (memory == nullptr)
      throw poplar::poplar_error("no memory for " + std::to_string(n_tiles) + " tiles");
    t10::isa::Program program(code.base, code.words.data(), code.lines.data(), code.lines.size());
    machine = std::make_unique<t10::isa::Machine>(static_cast<int>(n_tiles), std::move(program), code.shape,
                                                  reinterpret_cast<std::uint8_t *>(memory.get()));
    state = aligned(code.base + 4 * static_cast<std::uint32_t>(code.lines.size()));
    machine->options.stack_top =
        state + STATE_BYTES + SUPERVISOR_STACK_BYTES +
        static_cast<std::uint32_t>(code.shape.n_workers) * code.worker_stack_bytes;
    machine->options.worker_stack_bytes = code.worker_stack_bytes;
    cursors.assign(n_tiles, {aligned(machine->options.stack_top), code.shape.interleaved_base});
  }

  char *take(unsigned tile, std::size_t n_bytes, const Demand &demand) override {
    // What need not be interleaved fills the lower region first.
    for (int region = demand.is_interleaved ? 1 : 0; region < 2; ++region) {
      const std::uint32_t end = region == 0 ? std::min(code.shape.interleaved_base, code.shape.end) : code.shape.end;
      std::uint32_t at = cursors[tile][region];
      while (at + n_bytes <= end && shares_element(tile, at, n_bytes, demand))
        at = (granule(at) + 1) * granule_bytes() - before_first();
      if (at + n_bytes > end)
        continue;
      cursors[tile][region] = aligned(at + static_cast<std::uint32_t>(n_bytes));
      return memory.get() + std::size_t(tile) * bytes() + (at - code.shape.base);
    }
    throw poplar::poplar_error("the variables of tile " + std::to_string(tile) +
                               " do not fit beside each other (this host reuses no memory: run the C++ bodies)");
  }

  void set_floating_point(unsigned fp_control) override {
    for (int tile = 0; tile < machine->n_tiles(); ++tile)
      machine->tile(tile).fp_initial = fp_control;
  }

  std::uint64_t run(unsigned tile, const VertexType &type, const char *object) override {
    const char *own = memory.get() + std::size_t(tile) * bytes();
    char *word = memory.get() + std::size_t(tile) * bytes() + (state - code.shape.base);
    if (4 * type.fields.size() > STATE_BYTES)
      throw poplar::poplar_error(type.name + " has too many fields");
    for (const Field &field : type.fields) {
      std::uint32_t value;
      if (field.direction == Direction::word) {
        std::memcpy(&value, object + field.offset, sizeof value);
      } else {
        const char *pointer;
        std::memcpy(&pointer, object + field.offset, sizeof pointer);
        value = code.shape.base + static_cast<std::uint32_t>(pointer - own);
      }
      std::memcpy(word, &value, sizeof value);
      word += sizeof value;
    }
    const auto kind = type.is_supervisor ? t10::isa::VertexKind::kSupervisor : t10::isa::VertexKind::kMulti;
    try {
      return static_cast<std::uint64_t>(machine->run_vertex(static_cast<int>(tile), entry(type), state, kind));
    } catch (const t10::isa::Trap &trap) {
      char where[96];
      std::snprintf(where, sizeof where, " on tile %u, worker %d, pc 0x%x, address 0x%x, line %d of codelets.S: ", tile,
                    trap.worker, trap.pc, trap.address, trap.line);
      throw poplar::application_runtime_error(type.name + where + t10::isa::cause_name(trap.cause) + ": " + trap.what());
    }
  }

private:
  static constexpr std::uint32_t ALIGNMENT = 64, STATE_BYTES = 4096, SUPERVISOR_STACK_BYTES = 4096;
  struct Free {
    void operator()(char *bytes) const { std::free(bytes); }
  };

  Code code;
  std::unique_ptr<char, Free> memory;
  std::unique_ptr<t10::isa::Machine> machine;
  std::uint32_t state = 0;
  std::vector<std::array<std::uint32_t, 2>> cursors; // first free address of both regions, per tile
  std::map<const VertexType *, std::uint32_t> entries;

  static std::uint32_t aligned(std::uint32_t address) { return (address + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

  std::size_t bytes() const { return code.shape.memory_bytes(); }

  // Memory elements lie within granules of two, one of which begins with the interleaved region: what shares none shares
  // no element.
  std::uint32_t granule_bytes() const { return 2 * code.shape.element_bytes; }
  std::uint32_t before_first() const { return granule_bytes() - code.shape.interleaved_base % granule_bytes(); }
  std::uint32_t granule(std::uint32_t at) const { return (at + before_first()) / granule_bytes(); }

  bool shares_element(unsigned tile, std::uint32_t at, std::size_t n_bytes, const Demand &demand) const {
    const char *own = memory.get() + std::size_t(tile) * bytes();
    const std::uint32_t first = granule(at), last = granule(at + static_cast<std::uint32_t>(n_bytes) - 1);
    return std::any_of(demand.apart.begin(), demand.apart.end(), [&](const auto &other) {
      const auto begin = code.shape.base + static_cast<std::uint32_t>(other.first - own);
      const auto end = begin + static_cast<std::uint32_t>(other.second) - 1;
      return first <= granule(end) && granule(begin) <= last;
    });
  }

  std::uint32_t entry(const VertexType &type) {
    const auto known = entries.find(&type);
    if (known != entries.end())
      return known->second;
    std::string symbol = "__runCodelet_" + type.name;
    for (std::size_t at; (at = symbol.find("::")) != std::string::npos;)
      symbol.replace(at, 2, "__");
    const auto found = code.symbols.find(symbol);
    if (found == code.symbols.end())
      throw poplar::poplar_error("codelets.S does not define " + symbol);
    return entries[&type] = found->second;
  }
};

} // namespace poplar_host
