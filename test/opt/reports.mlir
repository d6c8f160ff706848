// RUN: t10-opt --cse --t10-verify-layouts --mlir-timing %s -o /dev/null 2>&1 | filecheck %s --check-prefix=TIME
// RUN: t10-opt --cse --t10-verify-layouts --mlir-pass-statistics %s -o /dev/null 2>&1 | filecheck %s --check-prefix=STAT

// TIME: ... Execution time report ...
// TIME: Total Execution Time: {{[0-9.]+}} seconds
// TIME: ----Wall Time----  ----Name----
// TIME: %)  Parser
// TIME-NEXT: %)  cse
// TIME-NEXT: %)  t10-verify-layouts
// TIME-NEXT: %)  Output
// TIME: %)  Total
// STAT: ... Pass statistics report ...
// STAT: cse
// STAT-NEXT: (S) 6 operations-before
// STAT-NEXT: (S) 5 operations-after
// STAT-NEXT: (S) -1 arith.addi
// STAT: t10-verify-layouts
// STAT-NEXT: (S) 5 operations-before
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  %2 = arith.muli %0, %1 : i32
  return %2 : i32
}
