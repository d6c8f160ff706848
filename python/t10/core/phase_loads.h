// What an exchange phase of arbitrary pattern makes every core do, from who takes what from whom: cycles of its ports, of
// gathering before the exchange, and of copying, scattering and filling behind it.
//
// Bytes that several groups want of a core are sent once (what one wants at several places, as often): a core's bytes are
// cut into segments wherever the set of groups that want them changes, and what one set wants is a transfer. Segments that
// are not whole words at all ends travel packed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "counting_sort.h"
#include "exchange_schedule.h"
#include "link_loads.h"
#include "memory_elements.h"
#include "move_rates.h"
#include "phase_groups.h"
#include "phase_pieces.h"
#include "scattering.h"
#include "strided_runs.h"

namespace t10 {

class PhaseLoads : public PhaseGroups {
 public:
  PhaseLoads(const LoadRates &rates, Int item_bytes, Int n_cores, const Places &places = {})
      : PhaseGroups(item_bytes, n_cores), rates_(rates), places_(places), n_(static_cast<std::size_t>(n_cores)) {}

  // All groups were given: what every core does. Once only: what was given is let go on the way. With `is_scheduled`, the
  // cycles of a port are those until the last transfer ends.
  Loads finish(bool is_scheduled) {
    clear();
    work_inside();
    offer_all();
    order_by_key(pieces_, n_, [](const Wanted &piece) { return piece.core; });
    sort_runs(
        pieces_, [](const Wanted &a, const Wanted &b) { return a.core == b.core; },
        [](const Wanted &a, const Wanted &b) { return std::tie(a.from, a.group, a.here) < std::tie(b.from, b.group, b.here); });
    for (std::size_t first = 0; first < pieces_.size();) first = cut_core(first);
    pieces_ = {};
    land();
    send();
    scatter();
    std::vector<Int> tails(n_);
    std::transform(behind_.begin(), behind_.end(), tails.begin(), [&](Int units) { return rates_.launched(units); });
    Loads result = loads_of(busy(), tails);
    if (result.port == 0) return result;
    if (is_scheduled) {
      const Schedule found = scheduled(tails);
      result.port = found.cycles;
      result.behind = found.done - found.cycles;
    }
    // What links hold up, they hold up of all cores.
    if (!rates_.links.empty()) result.port = passed(result.port);
    return result;
  }

  // Some groups were given: no more than what `finish` would return of all. Every core sends so many elements at least.
  Loads finish_some(const std::vector<Int> &n_sent) {
    clear();
    work_inside();
    senders_.assign(n_, {});
    for (std::size_t g = 0; g < groups_.size(); ++g) least_received(g);
    std::vector<Int> ends = busy(), tails(n_);
    std::transform(behind_.begin(), behind_.end(), tails.begin(), [&](Int units) { return rates_.launched(units); });
    const Int paired = rates_.paired_bytes_per_cycle;
    for (std::size_t core = 0; core < n_; ++core) {
      const Int n = bytes(n_sent[core]), sent = rates_.passing(n);
      ends[core] = std::max(ends[core] / rates_.exchange_bytes, paired > 0 ? std::min(sent, (n + paired - 1) / paired) : sent);
    }
    return loads_of(ends, tails);
  }

  // Of core `core`, once finished: units before and behind, and cycles of its ports.
  std::tuple<Int, Int, Int, Int> of_core(std::size_t core) const {
    return {before_[core], sent_[core], received_of(core), behind_[core]};
  }

 private:
  void clear() {
    for (auto *const each : {&before_, &behind_, &sent_, &own_received_}) each->assign(n_, 0);
    received_.assign(groups_.size(), 0);
    local_.assign(groups_.size(), {});
  }

  using PhaseGroups::is_words;
  bool is_words(const Wanted &piece) const { return is_words(piece.from, piece.here, piece.length); }
  Int end_of(const Wanted &piece) const { return piece.from + bytes(piece.length); }

  // What a group does at least to receive: cycles of a port times `exchange_bytes`, and work behind the exchange.
  void least_received(std::size_t group) {
    const Int fragment = rates_.fragment_cycles * rates_.exchange_bytes, per_byte = rates_.exchange_cycles;
    touched_.clear();
    const bool is_alone = groups_[group].n_members == 1;
    each_piece(group, [&](const Take &take) {
      if (is_alone && is_member(group, take.core)) return;
      const Int n = bytes(take.length);
      Sender &sender = senders_[static_cast<std::size_t>(take.core)];
      Int cost = per_byte * (groups_[group].pairing == Pairing::perhaps && may_be_wide(take) ? rates_.paired(n) : n);
      if (sender.n_bytes == 0) touched_.push_back(take.core);
      sender.note(n, (from_of(take) | bytes(take.here) | n) % (2 * kWordBytes) == 0);
      if (is_words(take)) {
        cost += fragment;
      } else {
        const Int to = bytes(take.here);
        if (!sender.is_packing) {
          sender.is_packing = true;
          cost += fragment;
        }
        sender.n_packed += n;
        if (to != sender.end) sender.is_ragged |= ((sender.end | to) & (kWordBytes - 1)) != 0;
        sender.end = to + n;
        sender.packed += rates_.packed(to, n);
      }
      received_[group] += cost;
      if (is_member(group, take.core)) own_received_[static_cast<std::size_t>(take.core)] += cost;
    });
    // What lands as words is gathered by its sender, if by nobody else; all else is scattered here.
    Int gathered = 0, saved = 0;
    for (const std::int32_t core : touched_) {
      Sender &sender = senders_[static_cast<std::size_t>(core)];
      if (groups_[group].pairing == Pairing::within && sender.is_wide) sender.saved = per_byte * rates_.saved(sender.n_bytes);
      saved += sender.saved;
      if (is_member(group, core)) own_received_[static_cast<std::size_t>(core)] -= sender.saved;
      if (!sender.is_packing) continue;
      sender.is_ragged |= (sender.end & (kWordBytes - 1)) != 0;
      const Int padding = per_byte * (padded(sender.n_packed, sender.is_ragged) - sender.n_packed);
      received_[group] += padding;
      if (is_member(group, core)) own_received_[static_cast<std::size_t>(core)] += padding;
      if (!sender.is_ragged && !is_member(group, core)) gathered = std::max(gathered, sender.packed);
    }
    received_[group] -= saved;
    each_member(group, [&](std::size_t core) {  // who has no partner saves nothing
      if (const std::size_t other = core ^ 1; saved > 0 && (other >= n_ || !is_member(group, static_cast<Int>(other))))
        own_received_[core] -= saved - senders_[core].saved;
    });
    others_.clear();
    each_piece(group, [&](const Take &take) {
      const bool is_own = is_alone && is_member(group, take.core);
      Sender &sender = senders_[static_cast<std::size_t>(take.core)];
      if (is_own ? bytes(take.length) >= kWordBytes : is_words(take) || !sender.is_ragged) return;
      others_.push_back({0, 0, bytes(take.here), bytes(take.length)});
      sender.n_ends += 2;
    });
    const Int units = gathered + Scattering::units(rates_, others_);
    each_member(group, [&](std::size_t core) {
      const Sender &own = senders_[core];
      const Int by_itself = own.n_ends > 0 && !is_alone ? own.packed + own.n_ends * rates_.ragged : 0;
      behind_[core] += std::max<Int>(units - by_itself, 0);
    });
    for (const std::int32_t core : touched_) senders_[static_cast<std::size_t>(core)] = {};
  }

  // Bytes that pass a port for `n` packed ones at least: whole words, and more where some do not arrive as words.
  Int padded(Int n, bool is_ragged) const {
    const Int unit = rates_.exchange_cycles == 1 && rates_.exchange_bytes % kWordBytes == 0 ? kWordBytes : 1;
    return (n + (is_ragged ? kWordBytes - 1 : 0) + unit - 1) / unit * unit;
  }

  // Fills, and what cores take from themselves: in rows of pieces that step evenly.
  void work_inside() {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::size_t end = g + 1 < groups_.size() ? groups_[g + 1].first_fill : fills_.size();
      Int units = 0;
      each_strided_run(groups_[g].first_fill, end,
                    [&](std::size_t i) { return Step{fills_[i].here, 0, fills_[i].length, -1, fills_[i].value}; },
                    [&](const Step &first, Int count, Int, Int) {
                      const Int at = first.here * item_bytes_;  // A constant has no place: it is as if it came from such a one.
                      units += rates_.copies(at, at, first.length * item_bytes_, count, 0, 0);
                    });
      if (units > 0) each_member(g, [&](std::size_t core) { behind_[core] += units; });
      const std::size_t last = g + 1 < groups_.size() ? groups_[g + 1].first_take : takes_.size();
      if (std::none_of(takes_.begin() + static_cast<std::ptrdiff_t>(groups_[g].first_take),
                       takes_.begin() + static_cast<std::ptrdiff_t>(last),
                       [&](const Take &take) { return is_member(g, take.core); }))
        continue;
      each_strided_run(groups_[g].first_take, last,
                    [&](std::size_t i) {
                      const Take &take = takes_[i];
                      return Step{take.here, take.slot, take.length, take.core, take.source};
                    },
                    [&](const Step &first, Int count, Int target_step, Int source_step) {
                      if (is_member(g, first.core)) copy(g, first, count, target_step, source_step);
                    });
    }
  }

  void copy(std::size_t group, const Step &first, Int count, Int target_step, Int source_step) {
    const Int n = first.length * item_bytes_;
    const auto core = static_cast<std::size_t>(first.core);
    if (n >= kWordBytes) {
      behind_[core] += rates_.copies(first.slot * item_bytes_, first.here * item_bytes_, n, count,
                                     source_step * item_bytes_, target_step * item_bytes_);
      return;
    }
    for (Int k = 0; k < count; ++k)
      local_[group].push_back({first.core, -1, (first.here + k * target_step) * item_bytes_, n});
  }

  // The pieces that groups want of other cores than their only member; what was given is not needed any longer.
  void offer_all() {
    std::size_t n_pieces = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) each_wanted(g, [&](const Take &) { ++n_pieces; });
    pieces_.reserve(n_pieces);
    for (std::size_t g = 0; g < groups_.size(); ++g)
      each_wanted(g, [&](const Take &take) {
        pieces_.push_back({from_of(take), take.here, take.length, take.core, static_cast<std::int32_t>(g)});
      });
    takes_ = {};
    fills_ = {};
  }

  template <class Use>
  void each_wanted(std::size_t group, Use &&use) const {
    const bool is_alone = groups_[group].n_members == 1;
    each_piece(group, [&](const Take &take) {
      if (!is_alone || !is_member(group, take.core)) use(take);
    });
  }

  // Cuts what is wanted of one core, from piece `first` on, into segments; returns the first piece of the next core.
  std::size_t cut_core(std::size_t first) {
    numbers_.clear();
    const std::int32_t core = pieces_[first].core;
    while (first < pieces_.size() && pieces_[first].core == core) {
      // Pieces that overlap, directly or by others between them.
      std::size_t last = first + 1;
      Int end = end_of(pieces_[first]);
      for (; last < pieces_.size() && pieces_[last].core == core && pieces_[last].from < end; ++last)
        end = std::max(end, end_of(pieces_[last]));
      cut_cluster(first, last);
      first = last;
    }
    return first;
  }

  void cut_cluster(std::size_t first, std::size_t last) {
    bounds_.clear();
    for (std::size_t i = first; i < last; ++i) {
      bounds_.push_back(pieces_[i].from);
      bounds_.push_back(end_of(pieces_[i]));
    }
    std::sort(bounds_.begin(), bounds_.end());
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
    active_.clear();
    std::size_t next = first;
    for (std::size_t b = 0; b + 1 < bounds_.size(); ++b) {
      const Int begin = bounds_[b];
      active_.erase(std::remove_if(active_.begin(), active_.end(),
                                   [&](std::size_t i) { return end_of(pieces_[i]) <= begin; }),
                    active_.end());
      while (next < last && pieces_[next].from <= begin) active_.push_back(next++);
      waiting_ = active_;
      while (!waiting_.empty()) add_segment(begin, bounds_[b + 1]);
    }
  }

  // Sends a segment to all who wait for it; who wants it at several places waits for the next time.
  void add_segment(Int begin, Int end) {
    targets_.clear();
    served_.clear();
    again_.clear();
    bool has_words = true;
    for (const std::size_t i : waiting_) {
      const auto place = std::lower_bound(targets_.begin(), targets_.end(), pieces_[i].group);
      if (place != targets_.end() && *place == pieces_[i].group) {
        again_.push_back(i);
        continue;
      }
      targets_.insert(place, pieces_[i].group);
      served_.push_back(i);
      has_words = has_words && is_words(pieces_[i]);
    }
    waiting_.swap(again_);
    const auto [found, is_new] = numbers_.try_emplace(targets_, transfers_.size());
    if (is_new) {
      transfers_.emplace_back();
      transfers_.back().core = pieces_[served_[0]].core;
      transfers_.back().first_target = all_targets_.size();
      transfers_.back().n_targets = targets_.size();
      all_targets_.insert(all_targets_.end(), targets_.begin(), targets_.end());
      all_writes_.resize(all_targets_.size(), 0);
    }
    Draft &transfer = transfers_[found->second];
    const Int n = end - begin;
    transfer.n_bytes += n;
    transfer.is_wide = transfer.is_wide && is_wide(begin, n);
    if (!places_.sources.empty()) touch(transfer, begin, n);
    if (has_words) {
      ++transfer.fragments;
      return;
    }
    for (const std::size_t i : served_)
      landings_.push_back({pieces_[i].group, static_cast<std::int32_t>(found->second),
                           bytes(pieces_[i].here) + begin - pieces_[i].from, n});
    if (begin != transfer.packed_end) ++transfer.packed_ranges;
    transfer.packed_end = end;
    transfer.packed_units += rates_.packed(begin, n);
  }

  // Whether some of what is taken may come in double words.
  bool may_be_wide(const Take &take) const {
    return rates_.paired_bytes_per_cycle > 0 && ((from_of(take) - bytes(take.here)) & (2 * kWordBytes - 1)) == 0;
  }

  // Whether a segment is double words wherever it is served.
  bool is_wide(Int begin, Int n) const {
    return std::all_of(served_.begin(), served_.end(), [&](std::size_t i) {
      return ((begin | n | (bytes(pieces_[i].here) + begin - pieces_[i].from)) & (2 * kWordBytes - 1)) == 0;
    });
  }

  // Notes which memory elements a segment is read from and written to.
  void touch(Draft &transfer, Int begin, Int n) {
    const auto source = static_cast<std::size_t>(begin >> kVariableShift);
    const Int offset = begin & ((Int{1} << kVariableShift) - 1);
    transfer.reads |= places_.elements.mask(places_.sources.at(source) + offset, n);
    for (const std::size_t i : served_) {
      const auto at = std::lower_bound(targets_.begin(), targets_.end(), pieces_[i].group) - targets_.begin();
      const Int to = places_.target + bytes(pieces_[i].here) + begin - pieces_[i].from;
      all_writes_[transfer.first_target + static_cast<std::size_t>(at)] |= places_.elements.mask(to, n);
    }
  }

  // Finds out which packed transfers are whole words wherever they arrive.
  void land() {
    order_by_key(landings_, transfers_.size(), [](const Landing &each) { return each.transfer; });
    order_by_key(landings_, groups_.size(), [](const Landing &each) { return each.group; });
    sort_runs(
        landings_, [](const Landing &a, const Landing &b) { return a.group == b.group && a.transfer == b.transfer; },
        [](const Landing &a, const Landing &b) { return a.to < b.to; });
    for (std::size_t i = 0; i < landings_.size();) {
      Draft &transfer = transfers_[static_cast<std::size_t>(landings_[i].transfer)];
      const std::size_t first = i;
      Int n_ranges = 0;
      while (i < landings_.size() && landings_[i].group == landings_[first].group &&
             landings_[i].transfer == landings_[first].transfer) {
        const Int begin = landings_[i].to;
        Int end = begin;
        for (; i < landings_.size() && landings_[i].group == landings_[first].group &&
               landings_[i].transfer == landings_[first].transfer && landings_[i].to == end;
             ++i)
          end += landings_[i].n;
        ++n_ranges;
        transfer.lands_as_words = transfer.lands_as_words && ((begin | end) & (kWordBytes - 1)) == 0;
      }
      transfer.landing_ranges = std::max(transfer.landing_ranges, n_ranges);
    }
  }

  // What transfers cost their ports, and the gathering of those in several ranges or in another order.
  void send() {
    for (Draft &each : transfers_) {
      const auto core = static_cast<std::size_t>(each.core);
      const bool is_packed = each.packed_ranges > 0, is_direct = is_packed && each.lands_as_words;
      if (each.packed_ranges > 1 || is_direct) before_[core] += rates_.row + each.packed_units;
      const Int padding = is_packed && !is_direct ? kWordBytes - 1 : 0;
      const Int fragments = each.fragments + (is_direct ? each.landing_ranges : is_packed ? 1 : 0);
      each.fragments = rates_.fragments(each.n_bytes + padding, fragments);
      each.cycles = rates_.transfer(each.n_bytes + padding, each.fragments);
      if (each.is_wide) each.paired_cycles = rates_.paired_transfer(each.n_bytes, each.fragments);
      bool has_pairs = false;
      for (std::size_t i = 0; i < each.n_targets; ++i) {
        const auto group = static_cast<std::size_t>(all_targets_[each.first_target + i]);
        received_[group] += each.cycles;
        if (is_member(group, each.core)) own_received_[core] += each.cycles;
        if (each.paired_cycles > 0) has_pairs |= save(each, group);
      }
      sent_[core] += has_pairs ? each.paired_cycles : each.cycles;
    }
  }

  // Takes off what cores of a group save that get a transfer together with their partners; returns whether there are any.
  bool save(const Draft &transfer, std::size_t group) {
    const auto first = all_targets_.begin() + static_cast<std::ptrdiff_t>(transfer.first_target);
    const auto last = first + static_cast<std::ptrdiff_t>(transfer.n_targets);
    bool found = false;
    each_member(group, [&](std::size_t core) {
      const std::size_t other = core ^ 1, sender = static_cast<std::size_t>(transfer.core);
      if (core == sender || other == sender || other >= n_) return;
      if (!is_member(group, static_cast<Int>(other)) && !std::binary_search(first, last, group_of_core_[other])) return;
      own_received_[core] += transfer.cycles - transfer.paired_cycles;
      found = true;
    });
    return found;
  }

  // What cores scatter: packed bytes that are not whole words where they arrive, and small pieces of their own.
  void scatter() {
    const auto by_place = [](const Landing &a, const Landing &b) { return a.to < b.to; };
    const auto by_core = [](const Landing &a, const Landing &b) { return std::tie(a.group, a.to) < std::tie(b.group, b.to); };
    const auto core_of = [&](const Landing &each) { return transfers_[static_cast<std::size_t>(each.transfer)].core; };
    std::size_t next = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      others_.clear();
      for (; next < landings_.size() && landings_[next].group == static_cast<std::int32_t>(g); ++next)
        if (!transfers_[static_cast<std::size_t>(landings_[next].transfer)].lands_as_words) others_.push_back(landings_[next]);
      std::vector<Landing> &local = local_[g];
      if (others_.empty() && local.empty()) continue;
      // Landings are runs that are in order: quicksort's worst case, and what merging is made for.
      std::stable_sort(others_.begin(), others_.end(), by_place);
      std::sort(local.begin(), local.end(), by_core);
      Scattering scattering(rates_, others_, core_of);
      each_member(g, [&](std::size_t core) {
        const auto number = static_cast<std::int32_t>(core);
        const auto first = std::lower_bound(local.begin(), local.end(), number,
                                            [](const Landing &each, std::int32_t group) { return each.group < group; });
        const auto last = std::find_if(first, local.end(), [&](const Landing &each) { return each.group != number; });
        behind_[core] += scattering.units_of(number, first, last);
      });
    }
  }

  // When the last transfer ends where ports are done after `port` cycles: no sooner than the busiest link is.
  Int passed(Int port) const {
    LinkLoads links(rates_.links, static_cast<Int>(n_));
    for (const Draft &each : transfers_) {
      links.begin(each.core, each.n_bytes);
      for (std::size_t t = each.first_target; t < each.first_target + each.n_targets; ++t)
        each_member(static_cast<std::size_t>(all_targets_[t]), [&](std::size_t core) { links.to(static_cast<Int>(core)); });
    }
    return std::max(port, rates_.fragment_cycles + links.cycles()) + links.latency();
  }

  // When transfers take place.
  Schedule scheduled(const std::vector<Int> &tails) const {
    std::vector<Transfer> list(transfers_.size());
    std::vector<std::pair<std::int32_t, std::uint64_t>> targets;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Draft &draft = transfers_[i];
      targets.clear();
      for (std::size_t t = draft.first_target; t < draft.first_target + draft.n_targets; ++t) {
        each_member(static_cast<std::size_t>(all_targets_[t]), [&](std::size_t core) {
          if (static_cast<std::int32_t>(core) != draft.core)
            targets.emplace_back(static_cast<std::int32_t>(core), all_writes_[t]);
        });
      }
      std::sort(targets.begin(), targets.end());
      Transfer &each = list[i];
      for (const auto &[core, writes] : targets) {
        each.targets.push_back(core);
        each.writes.push_back(writes);
      }
      each.source = draft.core;
      each.reads = draft.reads;
      each.n_bytes = draft.n_bytes;
      each.fragments = draft.fragments;
      each.cycles = draft.cycles;
      each.paired_cycles = draft.paired_cycles;
    }
    return best_schedule(list, tails, rates_.fragment_cycles);
  }

  Int received_of(std::size_t core) const {
    const std::int32_t group = group_of_core_[core];
    return group < 0 ? 0 : received_[static_cast<std::size_t>(group)] - own_received_[core];
  }

  // How long the busier port of every core is.
  std::vector<Int> busy() const {
    std::vector<Int> result(n_, 0);
    for (std::size_t core = 0; core < n_; ++core) result[core] = std::max(sent_[core], received_of(core));
    return result;
  }

  // The loads where the last transfer of a core ends at its `ends`.
  Loads loads_of(const std::vector<Int> &ends, const std::vector<Int> &tails) const {
    const Int port = *std::max_element(ends.begin(), ends.end());
    Int done = port;
    for (std::size_t core = 0; core < n_; ++core) done = std::max(done, ends[core] + tails[core]);
    return {port, rates_.launched(*std::max_element(before_.begin(), before_.end())), done - port};
  }

  LoadRates rates_;
  Places places_;
  std::size_t n_;
  std::vector<Int> before_, behind_, sent_, own_received_, received_;
  // Small pieces that cores take from themselves, by group: `group` is the core.
  std::vector<std::vector<Landing>> local_;
  std::vector<Wanted> pieces_;
  std::map<std::vector<std::int32_t>, std::size_t> numbers_;
  std::vector<Draft> transfers_;
  std::vector<std::int32_t> all_targets_;
  std::vector<std::uint64_t> all_writes_;
  std::vector<Landing> landings_, others_;
  std::vector<Int> bounds_;
  std::vector<std::size_t> active_, waiting_, served_, again_;
  std::vector<std::int32_t> targets_, touched_;
  std::vector<Sender> senders_;
};

}  // namespace t10
