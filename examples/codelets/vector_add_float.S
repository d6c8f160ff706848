// c[i] = a[i] + b[i], f32: six workers, one bundle per pair of elements.
//
// Vertex state, one 32-bit word each: a, b, c (pointers, 8-byte aligned), n (elements).
// a, b and c lie in three different memory elements: the loop loads from two and stores to one in one instruction.
#include "common.h"

#define A       m0
#define B       m1
#define C       m2
#define N       m3
#define ID      m4
#define PAIRS   m5
#define ADDRS   m6:7   // a, b and c packed
#define STRIDE  m8
#define OFFSET  m9
#define SCRATCH m10

#define X       a0:1
#define Y       a2:3
#define XY      a0:3
#define SUM     a4:5

// Pairs are dealt to workers one by one, so every pointer steps over six pairs: field 0 of the stride, in 8 bytes.
#define STEP    CTXT_WORKERS
#define SELECT2 0b0101
#define SELECT3 0b010101

BEGIN(ENTRY(VectorAddFloat), .worker)
  ld32            $A, $mvertex_base, 0
  ld32            $B, $mvertex_base, 1
  ld32            $C, $mvertex_base, 2
  ld32            $N, $mvertex_base, 3
  worker_id       $ID
  shr             $SCRATCH, $N, 1
  share_of_worker $PAIRS, $SCRATCH, $ID, $OFFSET
  brz             $PAIRS, .Ltail
  shl             $OFFSET, $ID, 3
  add             $A, $A, $OFFSET
  add             $B, $B, $OFFSET
  add             $C, $C, $OFFSET
  tapack          $ADDRS, $A, $B, $C
  setzi           $STRIDE, STEP
  ld2x64pace      $X, $Y, $ADDRS+=, $STRIDE, SELECT2
  add             $PAIRS, $PAIRS, -1
  brz             $PAIRS, .Llast
  { ld2x64pace    $X, $Y, $ADDRS+=, $STRIDE, SELECT2
    f32v2add      $SUM, $X, $Y }
  add             $PAIRS, $PAIRS, -1
  .align 8
  { rpt           $PAIRS, (2f - 1f) / 8 - 1
    fnop }
1:
  // Sum i is stored while sum i + 1 is computed and pair i + 2 is loaded.
  { ld2xst64pace  $XY, $SUM, $ADDRS+=, $STRIDE, SELECT3
    f32v2add      $SUM, $X, $Y }
2:
  { st64pace      $SUM, $ADDRS+=, $STRIDE, 0b01
    f32v2add      $SUM, $X, $Y }
  bri             .Lstore
.Llast:
  f32v2add        $SUM, $X, $Y
.Lstore:
  st64pace        $SUM, $ADDRS+=, $STRIDE, 0b01
.Ltail:
  // An odd element at the end belongs to the last worker, which has the fewest pairs.
  and             $SCRATCH, $N, 1
  cmpeq           $OFFSET, $ID, CTXT_WORKERS - 1
  and             $SCRATCH, $SCRATCH, $OFFSET
  brz             $SCRATCH, .Lend
  add             $N, $N, -1
  ld32            $A, $mvertex_base, 0
  ld32            $B, $mvertex_base, 1
  ld32            $C, $mvertex_base, 2
  ld32            $a0, $A, $N
  ld32            $a1, $B, $N
  f32add          $a0, $a0, $a1
  st32            $a0, $C, $N
.Lend:
  exitz           $mzero
END(ENTRY(VectorAddFloat), 0)
