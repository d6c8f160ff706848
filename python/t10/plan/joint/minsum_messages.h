// Messages of eliminations that were made before: those of other prices and limits differ in few variables.

#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "minsum_names.h"

namespace t10::minsum {

// A table that results where a variable is eliminated, its name, and the sums that were formed for it.
struct Message {
  std::size_t name = 0;
  std::size_t n_sums = 0;
  std::shared_ptr<const std::vector<double>> costs;
};

// Keeps messages by what they depend on. Names are never given twice, so that messages may be forgotten at any time.
class KeptMessages {
 public:
  // Returns the message that depends on `what`: the one that is known, or else the one that `make` returns.
  template <class Make>
  Message of(Numbers what, Make &&make) {
    {
      const std::lock_guard<std::mutex> locked(lock_);
      if (const auto known = messages_.find(what); known != messages_.end()) return known->second;
    }
    Message made = make();
    const std::lock_guard<std::mutex> locked(lock_);
    if (n_cells_ > kMostCells) {
      messages_.clear();
      n_cells_ = 0;
    }
    made.name = n_names_++;
    n_cells_ += what.size() + made.costs->size();
    return messages_.try_emplace(std::move(what), std::move(made)).first->second;
  }

  // Returns a name of a set of states, the same for equal ones.
  std::size_t name_of(const std::vector<std::size_t> &states) {
    const std::lock_guard<std::mutex> locked(lock_);
    return sets_.try_emplace(Numbers(states.begin(), states.end()), sets_.size()).first->second;
  }

 private:
  // 64 MiB.
  static constexpr std::size_t kMostCells = std::size_t{1} << 23;

  std::mutex lock_;
  std::unordered_map<Numbers, Message, NumbersHash> messages_;
  Names sets_;
  std::size_t n_cells_ = 0, n_names_ = 0;
};

}  // namespace t10::minsum
