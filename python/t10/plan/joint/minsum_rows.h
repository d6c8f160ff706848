// Sums of rows of numbers and their least, vectorised: the inner loops of elimination.

#pragma once

#include <cstddef>
#include <limits>

namespace t10::minsum {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Wider vectors where the machine has them; additions and comparisons give the same bits everywhere.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__)
#define T10_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define T10_WIDE
#endif

// The least of own[x] + sum of kRows rows[r][x], added in this order. Lanes are independent, so that it is vectorised.
template <std::size_t kRows>
inline __attribute__((always_inline)) double least_of_rows(const double *own, const double *const *rows, std::size_t n) {
  constexpr std::size_t kLanes = 8;
  const auto sum = [&](std::size_t x) {
    double result = own[x];
    for (std::size_t r = 0; r < kRows; ++r) result += rows[r][x];
    return result;
  };
  double lanes[kLanes];
  std::size_t x = 0;
  double least = kInfinity;
  if (n >= kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = kInfinity;
    for (; x + kLanes <= n; x += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const double found = sum(x + lane);
        lanes[lane] = found < lanes[lane] ? found : lanes[lane];
      }
    for (const double lane : lanes) least = lane < least ? lane : least;
  }
  for (; x < n; ++x) {
    const double found = sum(x);
    least = found < least ? found : least;
  }
  return least;
}

// Likewise for any number of rows.
T10_WIDE inline double least_sum(const double *own, const double *const *rows, std::size_t n_rows, std::size_t n,
                          double *sums) {
  switch (n_rows) {
    case 0: return least_of_rows<0>(own, rows, n);
    case 1: return least_of_rows<1>(own, rows, n);
    case 2: return least_of_rows<2>(own, rows, n);
    case 3: return least_of_rows<3>(own, rows, n);
    case 4: return least_of_rows<4>(own, rows, n);
    default: break;
  }
  for (std::size_t x = 0; x < n; ++x) sums[x] = own[x];
  for (std::size_t r = 0; r + 1 < n_rows; ++r)
    for (std::size_t x = 0; x < n; ++x) sums[x] += rows[r][x];
  return least_of_rows<1>(sums, rows + n_rows - 1, n);
}

// Writes own[x] + sum of rows[r][x] to sums.
T10_WIDE inline void add_rows(const double *own, const double *const *rows, std::size_t n_rows, std::size_t n, double *sums) {
  for (std::size_t x = 0; x < n; ++x) sums[x] = own[x];
  for (std::size_t r = 0; r < n_rows; ++r) {
    const double *row = rows[r];
    for (std::size_t x = 0; x < n; ++x) sums[x] += row[x];
  }
}

// Adds `more` to sums, and lowers entries of `least` to them.
T10_WIDE inline void add_and_lower(double *sums, double more, double *least, std::size_t n) {
  for (std::size_t x = 0; x < n; ++x) {
    sums[x] += more;
    least[x] = sums[x] < least[x] ? sums[x] : least[x];
  }
}

// Raises entries of `most` to what `cost` is more than those of a row.
T10_WIDE inline void raise_to_differences(double cost, const double *row, double *most, std::size_t n) {
  for (std::size_t x = 0; x < n; ++x) most[x] = cost - row[x] > most[x] ? cost - row[x] : most[x];
}

// The most that an entry of one row is more than that of another.
T10_WIDE inline double most_difference(const double *row, const double *other, std::size_t n) {
  constexpr std::size_t kLanes = 8;
  double lanes[kLanes];
  for (double &lane : lanes) lane = -kInfinity;
  std::size_t x = 0;
  for (; x + kLanes <= n; x += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double found = row[x + lane] - other[x + lane];
      lanes[lane] = found > lanes[lane] ? found : lanes[lane];
    }
  double most = -kInfinity;
  for (const double lane : lanes) most = lane > most ? lane : most;
  for (; x < n; ++x) most = row[x] - other[x] > most ? row[x] - other[x] : most;
  return most;
}

// Lowers entries of `least` to sums.
T10_WIDE inline void lower(const double *sums, double *least, std::size_t n) {
  for (std::size_t x = 0; x < n; ++x) least[x] = sums[x] < least[x] ? sums[x] : least[x];
}

}  // namespace t10::minsum
