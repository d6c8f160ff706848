// out[j] = sum over r of in[r][j], f32: the supervisor works out the strides once, its workers share the columns.
//
// Vertex state, one 32-bit word each: in (pointer to rows of n_columns, 16-byte aligned, in interleaved memory), out
// (pointer, 8-byte aligned), n_rows (at least 1), n_columns (a multiple of four).
#include "common.h"

// What the supervisor leaves on its stack for the workers, in words.
.set W_IN, 0
.set W_OUT, 1
.set W_ROWS, 2
.set W_GROUPS, 3      // groups of four columns
.set W_STRIDE, 4      // 16-byte units from one row to the next
.set W_SIZE, 6        // a multiple of eight bytes

#define S_STATE  m0
#define S_IN     m1
#define S_OUT    m2
#define S_ROWS   m3
#define S_GROUPS m4
#define S_ENTRY  m5

BEGIN(ENTRY(ReduceAddFloat), .supervisor)
  add    $sp, $sp, -4 * W_SIZE
  ld32   $S_IN, $S_STATE, 0
  ld32   $S_OUT, $S_STATE, 1
  ld32   $S_ROWS, $S_STATE, 2
  ld32   $S_GROUPS, $S_STATE, 3
  setzi  $S_ENTRY, .Lworker
  st32   $S_IN, $sp, W_IN
  st32   $S_OUT, $sp, W_OUT
  st32   $S_ROWS, $sp, W_ROWS
  shr    $S_GROUPS, $S_GROUPS, 2
  st32   $S_GROUPS, $sp, W_GROUPS
  st32   $S_GROUPS, $sp, W_STRIDE
  runall $S_ENTRY, $sp, 0
  sync   TEXCH_SYNCZONE_LOCAL
  add    $sp, $sp, 4 * W_SIZE
  br     $lr

#define IN      m0
#define OUT     m1
#define ROWS    m2
#define GROUPS  m3
#define STRIDE  m4
#define ID      m5
#define COUNT   m6
#define ROW     m7
#define OFFSET  m8

#define VALUES  a0:3
#define LOW     a4:5
#define HIGH    a6:7

.worker
.Lworker:
  ld32            $IN, $mvertex_base, W_IN
  ld32            $OUT, $mvertex_base, W_OUT
  ld32            $ROWS, $mvertex_base, W_ROWS
  { ld32          $GROUPS, $mvertex_base, W_GROUPS
    setzi         $a0, CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT }
  { ld32          $STRIDE, $mvertex_base, W_STRIDE
    uput          $FP_CLR, $a0 }
  worker_id       $ID
  share_of_worker $COUNT, $GROUPS, $ID, $OFFSET
  brz             $COUNT, .Lend
  shl             $OFFSET, $ID, 4
  add             $IN, $IN, $OFFSET
  add             $OUT, $OUT, $OFFSET
  add             $ROWS, $ROWS, -1
  add             $COUNT, $COUNT, -1
.Lgroup:
  mov             $ROW, $IN
  ld128step       $VALUES, $mzero, $ROW+=, $STRIDE
  .align 8
  { rpt           $ROWS, (2f - 1f) / 8 - 1
    fnop }
1:
  { ld128step     $VALUES, $mzero, $ROW+=, $STRIDE
    f32v4acc      $VALUES }
2:
  { add           $IN, $IN, 16 * CTXT_WORKERS
    f32v4acc      $VALUES }
  // Reading out moves the accumulators down and leaves zeros behind, ready for the next group.
  f32v2gina       $LOW, $azeros, 0
  { st64step      $LOW, $mzero, $OUT+=, 1
    f32v2gina     $HIGH, $azeros, 0 }
  st64step        $HIGH, $mzero, $OUT+=, 2 * CTXT_WORKERS - 1
  brnzdec         $COUNT, .Lgroup
.Lend:
  exitz           $mzero
END(ENTRY(ReduceAddFloat), 4 * W_SIZE)
