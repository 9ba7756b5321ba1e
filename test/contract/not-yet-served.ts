/**
 * Routes of the specification that the broker does not serve yet, by name. The contract test fails for an entry as soon as
 * its route is served: take it out then, so that everything else is asked of it.
 */
export const NOT_YET_SERVED: readonly string[] = [];
