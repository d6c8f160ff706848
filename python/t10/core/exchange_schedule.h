// When every transfer of an exchange phase happens: a greedy list schedule on the tiles' send and receive ports.
//
// A transfer keeps its sender's send port and all its receivers' receive ports busy from begin to end. A tile may send and
// receive at the same time unless what it reads and what it writes then share a memory element. A transfer to pairs keeps
// the send port of its sender's partner busy, too. Whenever ports become free, the transfers that can begin are started,
// the one first whose busiest port has most left to do, and its tile behind that.
//
// Planner, plan simulator and device simulator schedule with this.
#pragma once

#include <cstdint>
#include <vector>

#include "paired_transfers.h"

namespace t10 {

// A transfer, or a part of one that is cut: its number, its begin, and what it takes.
struct Part {
  std::int32_t transfer = 0;
  std::int64_t begin = 0, cycles = 0, fragments = 0;
};

struct Schedule {
  std::int64_t cycles = 0;  // end of the last transfer
  std::int64_t bound = 0;   // most that any port has to do
  std::int64_t done = 0;    // when the last tile has done what comes behind its transfers
  std::vector<Part> parts;
  std::vector<std::int64_t> sent, received;
};

// Schedule transfers, pairs in double words unless ports then wait so long for each other that all end later; `transfers`
// become those that were scheduled. What the busiest port needs is said of them uncut. `tails` are the cycles that each
// tile works once its last transfer has ended: the last to be done is done as soon as possible.
Schedule best_schedule(std::vector<Transfer> &transfers, const std::vector<std::int64_t> &tails, std::int64_t fragment_cycles);

}  // namespace t10
