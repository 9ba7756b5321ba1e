/** Describes the differences between two values, in lines for people. */
import { canonicalJson } from '../crypto/canonical.ts';

/** Whether two values are the same JSON, regardless of the order of members. */
export function sameJson(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

/** Returns `field: before → after`, or nothing when they are the same. */
export function difference(field: string, before: unknown, after: unknown): string[] {
  if (isSame(before ?? null, after ?? null)) return [];
  const [old, now] = [show(before), show(after)];
  // As JSON when both look the same as text: a branch may be called `none`.
  return [old === now ? `${field}: ${asJson(before)} → ${asJson(after)}` : `${field}: ${old} → ${now}`];
}

/** Fast path: among thousands of agents most values are strings. */
const isSame = (a: unknown, b: unknown): boolean =>
  a === b || (typeof a === 'object' && typeof b === 'object' && sameJson(a, b));

const asJson = (value: unknown): string => JSON.stringify(value ?? null);

/** Describes which entries a list loses and gains: `scopes: − a, + b`; nothing when both have the same entries. */
export function listDifference(field: string, before: readonly string[], after: readonly string[]): string[] {
  const lost = before.filter((entry) => !after.includes(entry)).map((entry) => `− ${entry}`);
  const gained = after.filter((entry) => !before.includes(entry)).map((entry) => `+ ${entry}`);
  return lost.length + gained.length === 0 ? [] : [`${field}: ${[...lost, ...gained].join(', ')}`];
}

function show(value: unknown): string {
  if (value === undefined || value === null) return 'none';
  if (Array.isArray(value)) return value.length === 0 ? 'nobody' : value.map(show).join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
