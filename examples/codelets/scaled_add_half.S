// y[i] = alpha * x[i] + beta * y[i], f16, in place: products and sums in f32, rounded to f16 once.
//
// Vertex state, one 32-bit word each: x, y (pointers, 8-byte aligned, in different memory elements), n (groups of four
// elements), alpha and beta (two f16 in one word).
#include "common.h"

#define X_PTR   m0
#define Y_PTR   m1
#define N       m2
#define ID      m3
#define COUNT   m4
#define ADDRS   m6:7   // x, y to load, y to store
#define STRIDE  m8
#define OFFSET  m9

#define X       a0:1
#define Y       a2:3
#define RESULT  a4:5
#define SCALES  a6

#define LOAD    ld2x64pace $X, $Y, $ADDRS+=, $STRIDE, 0b0101
#define STORE   st64pace $RESULT, $ADDRS+=, $STRIDE, 0b01
// The result of a mix is that of the one before: it leaves the accumulators one instruction later.
#define MIX     f16v4mix $RESULT, $X, $Y

BEGIN(ENTRY(ScaledAddHalf), .worker)
  ld32            $X_PTR, $mvertex_base, 0
  ld32            $Y_PTR, $mvertex_base, 1
  ld32            $N, $mvertex_base, 2
  ld32            $SCALES, $mvertex_base, 3
  worker_id       $ID
  share_of_worker $COUNT, $N, $ID, $OFFSET
  { brz           $COUNT, .Lend
    uput          $TAS, $SCALES }
  shl             $OFFSET, $ID, 3
  add             $X_PTR, $X_PTR, $OFFSET
  add             $Y_PTR, $Y_PTR, $OFFSET
  tapack          $ADDRS, $X_PTR, $Y_PTR, $Y_PTR
  setzi           $STRIDE, CTXT_WORKERS
  LOAD
  add             $COUNT, $COUNT, -1
  brz             $COUNT, .Llast
  { LOAD ; MIX }
  add             $COUNT, $COUNT, -1
  .align 8
  { rpt           $COUNT, (2f - 1f) / 8 - 1
    fnop }
1:
  { LOAD ; MIX }
  { STORE ; fnop }
2:
  MIX
  STORE
  bri             .Lstore
.Llast:
  MIX
.Lstore:
  MIX
  STORE
.Lend:
  exitz           $mzero
END(ENTRY(ScaledAddHalf), 0)
