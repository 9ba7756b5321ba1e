/**
 * Routes of the specification that the broker does not serve yet, by name. The contract test fails for an entry as soon as its route is served:
 * remove it then, so that all checks apply to it.
 */
export const NOT_YET_SERVED: readonly string[] = [];
