/* What is under way, for one kind of numbers and one binary interface: the functions that `begun.h` and the rules' like
   call, and that have no body as long as a derivative may follow. Each is linear in the numbers that it moves, so that
   its derivative moves more of them: by `beside` a tangent travels behind what was begun last, by `back` a cotangent
   will be sent back for it, and the wait is for all of them. So a derivative of any order sends, for one message of the
   program, as many as it has parts, in one order on both sides.

     start     begins what MPI's function of that name begins
     beside    a tangent of what was begun last: of what goes out, of what comes in
     back      a cotangent of it: begun by `turn`, added, or put to zero, by `end`
     number    what it is called from then on
     complete  waits, or asks, for requests; keeps those complete for the reverse sweep, and returns their number
     turn      begins all messages back of what was complete by then
     end       waits for those of what was begun by that number
     order     stops where something like this, begun before, is still under way, and will be kept */

#include "abi.h"
#include "helpers.h"
#include "waiting.h"
#include "requests.h"
#include "linear.h"
#include "starts.h"
#include "completion.h"
