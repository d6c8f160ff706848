// What moving elements costs a core (t10.core.loads.MoveRates): formulas of transfers, copies and pieces that are no words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace t10 {

constexpr std::int64_t kUnits = 256;  // work inside cores is counted in this part of a cycle
constexpr std::int64_t kWordBytes = 4;
constexpr std::size_t kRates = 17;

// In the order of t10.core.loads.MoveRates.
struct LoadRates {
  // A port passes `exchange_bytes` in `exchange_cycles`.
  std::int64_t exchange_bytes = 4, exchange_cycles = 1, fragment_cycles = 2, largest_words = 1;
  // Units per byte of a copy whose ends differ by a multiple of 8, of 4, of 2, or by an odd number of bytes.
  std::int64_t copy_8 = 0, copy_4 = 0, copy_2 = 0, copy_1 = 0;
  // Units per byte of packed pieces of less than two words, and of longer ones: of even bytes, and others.
  std::int64_t short_even = 0, short_odd = 0, long_even = 0, long_odd = 0;
  // Units per row of copies, and per end of a piece that is no word's end.
  std::int64_t row = 0, ragged = 0;
  // Bytes per cycle to both cores of a pair in transfers of so many words and more; 0: as to any others.
  std::int64_t paired_bytes_per_cycle = 0, least_paired_words = 0;
  // Cycles before work inside a core begins.
  std::int64_t launch_cycles = 0;
  // Numbers of t10.core.links.Links; none where all cores share one exchange.
  std::vector<std::int64_t> links;

  LoadRates() = default;
  explicit LoadRates(const std::vector<std::int64_t> &given) {
    if (given.size() < kRates) throw std::invalid_argument("LoadRates: " + std::to_string(kRates) + " rates are needed");
    links.assign(given.begin() + kRates, given.end());
    std::int64_t *const rates[kRates] = {&exchange_bytes, &exchange_cycles, &fragment_cycles, &largest_words, &copy_8, &copy_4,
                                         &copy_2, &copy_1, &short_even, &short_odd, &long_even, &long_odd, &row, &ragged,
                                         &paired_bytes_per_cycle, &least_paired_words,
                                         &launch_cycles};
    for (std::size_t i = 0; i < kRates; ++i) *rates[i] = given[i];
    if (exchange_bytes < 1 || exchange_cycles < 1 || largest_words < 1)
      throw std::invalid_argument("LoadRates: bandwidths must be 1 or more");
  }

  // Gathering or scattering `n` bytes that are not whole words.
  std::int64_t packed(std::int64_t at, std::int64_t n) const {
    const bool is_even = (at | n) % 2 == 0;
    return n * (n < 2 * kWordBytes ? (is_even ? short_even : short_odd) : (is_even ? long_even : long_odd));
  }

  std::int64_t ragged_ends(std::int64_t begin, std::int64_t end) const {
    const std::int64_t n = (begin % kWordBytes != 0) + (end % kWordBytes != 0);
    return ragged * (end - begin < kWordBytes ? std::min<std::int64_t>(n, 1) : n);
  }

  // Copying `count` pieces of `n` bytes inside a core; steps are 0 where there is one.
  std::int64_t copies(std::int64_t from, std::int64_t to, std::int64_t n, std::int64_t count, std::int64_t source_step,
                      std::int64_t target_step) const {
    const std::int64_t distance = (from - to) | (source_step - target_step);
    const std::int64_t per_byte = distance % 8 == 0 ? copy_8 : distance % 4 == 0 ? copy_4 : distance % 2 == 0 ? copy_2 : copy_1;
    return row + count * (n * per_byte + ragged_ends(to, to + n));
  }

  // Fragments of a transfer, cut where one is too long for an instruction.
  std::int64_t fragments(std::int64_t n_bytes, std::int64_t pieces) const {
    return pieces + ((n_bytes + kWordBytes - 1) / kWordBytes - 1) / largest_words;
  }

  // Cycles in which so many bytes pass a port.
  std::int64_t passing(std::int64_t n_bytes) const {
    return (n_bytes * exchange_cycles + exchange_bytes - 1) / exchange_bytes;
  }

  std::int64_t transfer(std::int64_t n_bytes, std::int64_t fragments) const {
    return passing(n_bytes) + fragments * fragment_cycles;
  }

  // The same in double words, to both cores of pairs; 0 where a chip knows no pairs or the transfer is too short.
  std::int64_t paired_transfer(std::int64_t n_bytes, std::int64_t fragments) const {
    if (paired_bytes_per_cycle == 0 || n_bytes < least_paired_words * kWordBytes) return 0;
    return (n_bytes + paired_bytes_per_cycle - 1) / paired_bytes_per_cycle + fragments * fragment_cycles;
  }

  // Cycles of so many units of work inside a core.
  std::int64_t launched(std::int64_t units) const { return units > 0 ? launch_cycles + (units + kUnits - 1) / kUnits : 0; }

  // Bytes that pass a port in single words while `n` do in double words, no more.
  std::int64_t paired(std::int64_t n) const { return n * exchange_bytes / (paired_bytes_per_cycle * exchange_cycles); }

  // How many bytes fewer these are for a transfer of `n` bytes.
  std::int64_t saved(std::int64_t n) const { return paired_transfer(n, 0) == 0 ? 0 : n - paired(n); }
};

// Cycles of a phase: of work inside cores before the exchange; of the busiest port, or until the last transfer ends of a
// phase that was scheduled; and from there until the last core is done, whose work begins when its own transfers end.
struct Loads {
  std::int64_t port = 0, before = 0, behind = 0;
};

}  // namespace t10
