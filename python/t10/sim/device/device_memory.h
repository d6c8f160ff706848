// The memories of all tiles and a shadow byte per byte that tells whether anybody wrote it (see _device.pyi).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace t10 {

constexpr std::uint8_t POISON = 0xFF;

// A run of equal pieces: columns of t10.core.device.RUN_COLUMNS.
struct Run {
  std::int32_t source, source_tile, source_offset, target_tile, target_offset, n_bytes, count, source_step, target_step;
};

// Constants written into a tile: target tile, offset, bytes of a piece, count, step.
struct Fill {
  std::int32_t tile, offset, n_bytes, count, step;
};

// What stopped a move: number of the run and its tile and offset in the memory; `row` is -1 where nothing did.
struct Fault {
  std::int64_t row = -1;
  std::int32_t tile = -1;
  std::int64_t offset = -1;
};

struct Free {
  void operator()(void *memory) const { std::free(memory); }
};

class TileMemories {
 public:
  TileMemories(std::vector<std::uint8_t *> bytes, std::int64_t n_bytes)
      : bytes_(std::move(bytes)), n_bytes_(n_bytes), shadow_(bytes_.size()) {}

  TileMemories(const TileMemories &) = delete;
  TileMemories &operator=(const TileMemories &) = delete;

  // The shadow of a tile comes into being with its first use, and its pages with theirs: calloc makes them as needed.
  std::uint8_t *shadow(std::int64_t tile) {
    auto &own = shadow_[tile];
    if (own == nullptr) {
      own.reset(static_cast<std::uint8_t *>(std::calloc(n_bytes_, 1)));
      if (own == nullptr) throw std::bad_alloc();
    }
    return own.get();
  }

  std::uint8_t *at(std::int64_t tile, std::int64_t offset, std::int64_t n) {
    if (tile < 0 || tile >= std::int64_t(bytes_.size())) throw std::out_of_range("no tile " + std::to_string(tile));
    if (offset < 0 || n < 0 || offset + n > n_bytes_) {
      throw std::out_of_range(std::to_string(n) + " bytes at offset " + std::to_string(offset) + " of tile " +
                              std::to_string(tile) + " lie outside its memory of " + std::to_string(n_bytes_) +
                              " bytes");
    }
    return bytes_[tile] + offset;
  }

  void write(std::int64_t tile, std::int64_t offset, const std::uint8_t *data, std::int64_t n) {
    std::memcpy(at(tile, offset, n), data, n);
    std::memset(shadow(tile) + offset, 1, n);
  }

  void mark(std::int64_t tile, std::int64_t offset, std::int64_t n) {
    at(tile, offset, n);
    std::memset(shadow(tile) + offset, 1, n);
  }

  void poison(std::int64_t tile, std::int64_t offset, std::int64_t n) {
    std::memset(at(tile, offset, n), POISON, n);
    if (shadow_[tile] != nullptr) std::memset(shadow_[tile].get() + offset, 0, n);
  }

  // Do one exchange: all reads come before all writes. What nobody wrote stays so where it arrives; where it is refused,
  // nothing moves.
  Fault move(const Run *runs, std::int64_t n_runs, const std::int64_t *source_offsets, std::int64_t target_offset,
             bool refuses_unwritten) {
    std::size_t total = 0;
    for (std::int64_t i = 0; i < n_runs; ++i) total += std::size_t(runs[i].n_bytes) * runs[i].count;
    if (staging_.size() < total) staging_.resize(total), staged_shadow_.resize(total);
    std::uint8_t *out = staging_.data(), *out_known = staged_shadow_.data();
    for (std::int64_t i = 0; i < n_runs; ++i) {
      const Run &run = runs[i];
      std::int64_t offset = source_offsets[run.source] + run.source_offset;
      check_span(run.source_tile, offset, run.n_bytes, run.count, run.source_step);
      const std::uint8_t *from = bytes_[run.source_tile] + offset, *known = shadow(run.source_tile) + offset;
      for (std::int32_t k = 0; k < run.count; ++k) {
        if (refuses_unwritten && std::memchr(known, 0, run.n_bytes) != nullptr) {
          return {i, run.source_tile, offset + std::int64_t(k) * run.source_step};
        }
        std::memcpy(out, from, run.n_bytes);
        std::memcpy(out_known, known, run.n_bytes);
        out += run.n_bytes;
        out_known += run.n_bytes;
        from += run.source_step;
        known += run.source_step;
      }
    }
    const std::uint8_t *in = staging_.data(), *in_known = staged_shadow_.data();
    for (std::int64_t i = 0; i < n_runs; ++i) {
      const Run &run = runs[i];
      const std::int64_t offset = target_offset + run.target_offset;
      check_span(run.target_tile, offset, run.n_bytes, run.count, run.target_step);
      std::uint8_t *to = bytes_[run.target_tile] + offset, *known = shadow(run.target_tile) + offset;
      for (std::int32_t k = 0; k < run.count; ++k) {
        std::memcpy(to, in, run.n_bytes);
        std::memcpy(known, in_known, run.n_bytes);
        in += run.n_bytes;
        in_known += run.n_bytes;
        to += run.target_step;
        known += run.target_step;
      }
    }
    return {};
  }

  void fill(const Fill &row, std::int64_t target_offset, const std::uint8_t *element, std::int64_t item_bytes) {
    const std::int64_t first = target_offset + row.offset;
    check_span(row.tile, first, row.n_bytes, row.count, row.step);
    for (std::int32_t k = 0; k < row.count; ++k) {
      const std::int64_t begin = first + std::int64_t(k) * row.step;
      std::uint8_t *to = bytes_[row.tile] + begin;
      for (std::int64_t done = 0; done + item_bytes <= row.n_bytes; done += item_bytes) {
        std::memcpy(to + done, element, item_bytes);
      }
      std::memset(shadow(row.tile) + begin, 1, row.n_bytes);
    }
  }

 private:
  void check_span(std::int64_t tile, std::int64_t offset, std::int64_t n, std::int64_t count, std::int64_t step) {
    const std::int64_t last = offset + (count - 1) * step;
    at(tile, offset, n);
    at(tile, last, n);
  }

  std::vector<std::uint8_t *> bytes_;
  std::int64_t n_bytes_;
  std::vector<std::unique_ptr<std::uint8_t, Free>> shadow_;
  std::vector<std::uint8_t> staging_, staged_shadow_;
};

// Find a byte of the target variable that one exchange writes twice, or both reads and writes.
inline Fault find_race(const Run *runs, std::int64_t n_runs, const Fill *fills, std::int64_t n_fills,
                       const std::int64_t *source_offsets, std::int64_t target_offset, std::int64_t n_tiles,
                       std::int64_t target_bytes) {
  constexpr std::uint8_t READ = 1, WRITTEN = 2;
  std::vector<std::vector<std::uint8_t>> seen(n_tiles);
  const auto touch = [&](std::int64_t row, std::int32_t tile, std::int64_t begin, std::int64_t n,
                         std::uint8_t kind, Fault &fault) {
    if (begin >= target_bytes || begin + n <= 0 || tile < 0 || tile >= n_tiles) return;
    auto &own = seen[tile];
    if (own.empty()) own.assign(target_bytes, 0);
    const std::int64_t last = begin + n < target_bytes ? begin + n : target_bytes;
    for (std::int64_t i = begin < 0 ? 0 : begin; i < last; ++i) {
      if (kind == WRITTEN && own[i] != 0 && fault.row < 0) fault = {row, tile, target_offset + i};
      own[i] |= kind;
    }
  };
  Fault fault;
  for (std::int64_t i = 0; i < n_runs; ++i) {
    const Run &run = runs[i];
    const std::int64_t begin = source_offsets[run.source] + run.source_offset - target_offset;
    for (std::int64_t k = 0; k < run.count; ++k) {
      touch(i, run.source_tile, begin + k * run.source_step, run.n_bytes, READ, fault);
    }
  }
  for (std::int64_t i = 0; i < n_runs; ++i) {
    const Run &run = runs[i];
    for (std::int64_t k = 0; k < run.count; ++k) {
      touch(i, run.target_tile, run.target_offset + k * run.target_step, run.n_bytes, WRITTEN, fault);
    }
  }
  for (std::int64_t i = 0; i < n_fills; ++i) {
    const Fill &fill = fills[i];
    for (std::int64_t k = 0; k < fill.count; ++k) {
      touch(n_runs + i, fill.tile, fill.offset + k * std::int64_t(fill.step), fill.n_bytes, WRITTEN, fault);
    }
  }
  return fault;
}

}  // namespace t10
