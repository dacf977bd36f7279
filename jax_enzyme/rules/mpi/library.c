/* The rules of MPI for one kind of numbers (LETTER) and one binary interface (ABI).

   The convention is that of `rules/blas/support.h`: R_jvp, R_forward, R_reverse, with the parameters of MPI's function
   first and the shadows of its buffers behind, null where a buffer has none. Every process that takes part in a call
   takes part in its derivative, whatever is null: a tangent or cotangent that does not exist is sent as zeros.

   Numbers travel as they did, tangents right behind them in the same call, cotangents the other way
   (Towara, Schanen, Naumann, "MPI-parallel discrete adjoint OpenFOAM", 2015; Moses et al., SC'22). Calls of the reverse
   sweep are in the reverse order on all processes, so that messages between two of them match in order. Their tags are
   higher by JE_BACK: a receive from any source that is still open must not take one. */

#include "abi.h"
#include "helpers.h"
#include "waiting.h"
#include "begun.h"
#include "messages.h"
#include "collective.h"
#include "blocks.h"
#include "prefixes.h"
#include "scattered.h"
#include "neighbours.h"
#include "communicators.h"
#include "failure.h"
