/** Explains why a document falls under no scope, and what the agent can change. */

const MAX_NAMED = 5;

/** Returns why no single scope covers all root fields of a document. `covering`: for each field, the scopes that cover it. */
export function whyUncovered(
  operation: 'query' | 'mutation',
  fields: readonly string[],
  covering: readonly (readonly string[])[],
): string {
  const some = (named: readonly string[]) =>
    `${named.slice(0, MAX_NAMED).join(', ')}${named.length > MAX_NAMED ? ` and ${named.length - MAX_NAMED} more` : ''}`;
  const clipped = fields.map((field) => (field.length > 64 ? `${field.slice(0, 64)}…` : field));
  const uncovered = clipped.filter((_, i) => covering[i]?.length === 0);
  if (uncovered.length > 0) return `no one scope covers the root field ${operation} ${some(uncovered)}`;
  const covered = clipped.map((field, i) => `${field} (${covering[i]?.join(' or ')})`);
  return `no one scope covers all root fields of this ${operation}, call them one by one: ${some(covered)}`;
}
