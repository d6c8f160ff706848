// out[j][r] = in[r][j] for r = 0..3, f16: four rows are turned into columns of four through the accumulators.
//
// Vertex state, one 32-bit word each: in (pointer to four rows of n_columns, 8-byte aligned), out (pointer, 8-byte
// aligned), n_columns (a multiple of four).
#include "common.h"

#define IN      m0
#define OUT     m1
#define COLUMNS m2
#define ID      m3
#define COUNT   m4
#define GROUPS  m5     // groups of four columns; also 8-byte units from one row to the next
#define ROW     m6
#define OFFSET  m7

#define R0      a0:1
#define R1      a2:3
#define R2      a4:5
#define R3      a6:7
#define COLUMN  a0:1

BEGIN(ENTRY(TransposeHalf), .worker)
  ld32            $IN, $mvertex_base, 0
  ld32            $OUT, $mvertex_base, 1
  ld32            $COLUMNS, $mvertex_base, 2
  worker_id       $ID
  shr             $GROUPS, $COLUMNS, 2
  share_of_worker $COUNT, $GROUPS, $ID, $OFFSET
  brz             $COUNT, .Lend
  shl             $OFFSET, $ID, 3
  add             $IN, $IN, $OFFSET
  shl             $OFFSET, $ID, 5
  add             $OUT, $OUT, $OFFSET
  add             $COUNT, $COUNT, -1
.Lgroup:
  mov             $ROW, $IN
  ld64step        $R0, $mzero, $ROW+=, $GROUPS
  ld64step        $R1, $mzero, $ROW+=, $GROUPS
  { ld64step      $R2, $mzero, $ROW+=, $GROUPS
    f16v4istacc   $azeros, $R0, $R1, TISTACC_P0 }
  ld64step        $R3, $mzero, $ROW+=, $GROUPS
  { add           $IN, $IN, 8 * CTXT_WORKERS
    f16v4istacc   $azeros, $R2, $R3, TISTACC_P1 }
  f16v4stacc      $COLUMN, TSTACC_P0
  { st64step      $COLUMN, $mzero, $OUT+=, 1
    f16v4stacc    $COLUMN, TSTACC_P1 }
  // Columns 2 and 3 leave when the rows of the next block would enter.
  { st64step      $COLUMN, $mzero, $OUT+=, 1
    f16v4istacc   $COLUMN, $azeros, $azeros, TISTACC_P0 }
  { st64step      $COLUMN, $mzero, $OUT+=, 1
    f16v4istacc   $COLUMN, $azeros, $azeros, TISTACC_P1 }
  st64step        $COLUMN, $mzero, $OUT+=, 1 + 4 * (CTXT_WORKERS - 1)
  brnzdec         $COUNT, .Lgroup
.Lend:
  exitz           $mzero
END(ENTRY(TransposeHalf), 0)
