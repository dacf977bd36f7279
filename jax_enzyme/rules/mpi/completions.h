/* All functions that wait for requests, or ask for them: COMPLETES makes functions of them. */

#define STATUSES struct je_mpi_status *statuses
COMPLETES(wait, GIVEN(handle *request, STATUSES), GIVEN(request, statuses), je_all(1, request), statuses, 1)
COMPLETES(test, GIVEN(handle *request, int *flag, STATUSES), GIVEN(request, flag, statuses),
          je_all_if(1, request, flag), statuses, 1)
COMPLETES(waitall, GIVEN(int count, handle *requests, STATUSES), GIVEN(count, requests, statuses),
          je_all(count, requests), statuses, count)
COMPLETES(testall, GIVEN(int count, handle *requests, int *flag, STATUSES), GIVEN(count, requests, flag, statuses),
          je_all_if(count, requests, flag), statuses, count)
COMPLETES(waitany, GIVEN(int count, handle *requests, int *index, STATUSES), GIVEN(count, requests, index, statuses),
          je_any(count, requests, index), statuses, 1)
COMPLETES(testany, GIVEN(int count, handle *requests, int *index, int *flag, STATUSES),
          GIVEN(count, requests, index, flag, statuses), je_any_if(count, requests, index, flag), statuses, 1)
COMPLETES(waitsome, GIVEN(int count, handle *requests, int *many, int *indices, STATUSES),
          GIVEN(count, requests, many, indices, statuses), je_some(count, requests, many, indices, 1), statuses, *many)
COMPLETES(testsome, GIVEN(int count, handle *requests, int *many, int *indices, STATUSES),
          GIVEN(count, requests, many, indices, statuses), je_some(count, requests, many, indices, 0), statuses, *many)
