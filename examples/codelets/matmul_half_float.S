// y[o][i][8] = x[i][16] times the transpose of w[o][8][16]: f16 inputs, f32 sums, on the matrix engine at its full rate.
//
// Vertex state, one 32-bit word each: x (f16), w (f16), y (f32): pointers, 8-byte aligned, x and y in different memory
// elements; n_rows (at least 1), n_blocks of eight outputs (at least 1). Reads 16 bytes behind the end of x.
//
// The supervisor loads the weights of a block, launches the workers, and waits before it loads the next: the weights
// are common to all workers. A worker takes 4 bundles per row, 128 products each.
#include "common.h"

.set W_X, 0
.set W_Y, 1
.set W_ROWS, 2
.set W_SIZE, 4         // words of the workers' state

.set ROW_BYTES_IN, 16 * 2
.set ROW_BYTES_OUT, 8 * 4

#define S_STATE  m0
#define S_X      m1
#define S_W      m2
#define S_Y      m3
#define S_ROWS   m4
#define S_BLOCKS m5
#define S_ENTRY  m6
#define S_STEP   m7

// Eight units of four phases, eight bytes each: n = 4 * unit + phase, in the order of memory.
.macro load_weights
  .set n, 0
  .rept 8 * 4
    ld64putcs n
    .set n, n + 1
  .endr
.endm

BEGIN(ENTRY(MatMulHalfFloat), .supervisor)
  add     $sp, $sp, -4 * W_SIZE
  ld32    $S_X, $S_STATE, 0
  ld32    $S_W, $S_STATE, 1
  ld32    $S_Y, $S_STATE, 2
  ld32    $S_ROWS, $S_STATE, 3
  ld32    $S_BLOCKS, $S_STATE, 4
  setzi   $S_ENTRY, .Lworker
  st32    $S_X, $sp, W_X
  st32    $S_ROWS, $sp, W_ROWS
  shl     $S_STEP, $S_ROWS, 5            // bytes of one block of y
  add     $S_BLOCKS, $S_BLOCKS, -1
  put     $CCCSLOAD, $S_W                // moves on by itself from block to block
.Lblock:
  st32    $S_Y, $sp, W_Y
  add     $S_Y, $S_Y, $S_STEP
  load_weights
  runall  $S_ENTRY, $sp, 0
  sync    TEXCH_SYNCZONE_LOCAL
  brnzdec $S_BLOCKS, .Lblock
  add     $sp, $sp, 4 * W_SIZE
  br      $lr

#define X_PTR   m0
#define Y_PTR   m1
#define ROWS    m2
#define ID      m3
#define FIRST   m4
#define COUNT   m5
#define ADDRS   m6:7   // x, nothing, y
#define SCRATCH m8

#define X       a0:1
#define OUT     a2:3

#define STEP(RESULT, PHASE) f16v4sisoamp RESULT, $X, $azeros, TAMP_F16V4_E4_P##PHASE

// \bytes of row \first in array \pointer: pointer += first * bytes.
.macro advance pointer, first, log2_bytes
  shl \first, \first, \log2_bytes
  add \pointer, \pointer, \first
.endm

.worker
.Lworker:
  ld32            $X_PTR, $mvertex_base, W_X
  ld32            $Y_PTR, $mvertex_base, W_Y
  { ld32          $ROWS, $mvertex_base, W_ROWS
    setzi         $a0, CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT }
  worker_id       $ID
  { nop
    uput          $FP_CLR, $a0 }
  // Consecutive rows for every worker: those before it are the shares of smaller numbers, (rows * id + 5) / 6.
  mul             $FIRST, $ROWS, $ID
  add             $COUNT, $FIRST, $ROWS
  setzi           $SCRATCH, 0xAAAB
.irp value, FIRST, COUNT
  add             $\value, $\value, CTXT_WORKERS - 1
  mul             $\value, $\value, $SCRATCH
  shr             $\value, $\value, 18
.endr
  sub             $COUNT, $COUNT, $FIRST
  brz             $COUNT, .Lend
  add             $COUNT, $COUNT, -1
  mov             $SCRATCH, $FIRST
  advance         $X_PTR, $FIRST, 5
  advance         $Y_PTR, $SCRATCH, 5
  ld64step        $X, $mzero, $X_PTR+=, 1
  // The first row: results leave one row later, so nothing is stored yet.
  { ld64step      $X, $mzero, $X_PTR+=, 1
    STEP($azeros, 0) }
  { ld64step      $X, $mzero, $X_PTR+=, 1
    STEP($azeros, 1) }
  { ld64step      $X, $mzero, $X_PTR+=, 1
    STEP($azeros, 2) }
  { ld64step      $X, $mzero, $X_PTR+=, 1
    STEP($azeros, 3) }
  { ld64step      $X, $mzero, $X_PTR+=, 1
    STEP($OUT, 0) }
  tapack          $ADDRS, $X_PTR, $mzero, $Y_PTR
  .align 8
  { rpt           $COUNT, (2f - 1f) / 8 - 1
    fnop }
1:
.irp phase, 1, 2, 3, 0
  { ldst64pace    $X, $OUT, $ADDRS+=, $mzero, 0
    f16v4sisoamp  $OUT, $X, $azeros, TAMP_F16V4_E4_P\phase }
.endr
2:
  // The last row leaves.
.irp phase, 1, 2, 3
  { st64pace      $OUT, $ADDRS+=, $mzero, 0
    f16v4sisoamp  $OUT, $azeros, $azeros, TAMP_F16V4_E4_P\phase }
.endr
  st64pace        $OUT, $ADDRS+=, $mzero, 0
.Lend:
  exitz           $mzero
END(ENTRY(MatMulHalfFloat), 4 * W_SIZE)
