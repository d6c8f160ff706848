// What the codelets of this folder share: beginning and end of a function, division of work among the six workers.
#pragma once
#include "poplar/StackSizeDefs.hpp"
#include "poplar/TileConstants.hpp"

// The entry symbol of vertex class `example::NAME`.
#define ENTRY(NAME) __runCodelet_example__##NAME

#define BEGIN(SYMBOL, MODE) \
  .section .text.SYMBOL, "ax" ; \
  .globl SYMBOL ; \
  .type SYMBOL, @function ; \
  .align 8 ; \
  MODE ; \
  SYMBOL:

#define END(SYMBOL, STACK_BYTES) \
  .size SYMBOL, . - SYMBOL ; \
  DEF_STACK_USAGE STACK_BYTES, SYMBOL

// \share = how many of \n items, dealt to the six workers one by one, fall to worker \id: (n + 5 - id) / 6.
// A division by 6 is a multiplication by 0xAAAB and a shift by 18, exact below 98,304. \scratch is overwritten.
.macro share_of_worker share:req, n:req, id:req, scratch:req
  add   \share, \n, CTXT_WORKERS - 1
  sub   \share, \share, \id
  setzi \scratch, 0xAAAB
  mul   \share, \share, \scratch
  shr   \share, \share, 18
.endm

// \id = number of this worker, 0..5.
.macro worker_id id:req
  get   \id, $WSR
  and   \id, \id, CSR_W_WSR__CTXTID_M1__MASK
.endm
