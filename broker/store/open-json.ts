/**
 * JSON columns as they were written, for what shows, exports or signs rows: one row that was altered outside of the broker hides no other.
 * What is decided by a column is read by its schema (stored-json.ts).
 */
import type { JsonObject } from '../policy/facts.ts';

/** The value of a column; null, too: it holds no JSON. */
export function openStored(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The members of an object, in their order; of anything else none. */
export const membersOf = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null ? { ...value } : {};

/** The members of a column that holds an object. */
export const openMembers = (text: string | null): JsonObject => membersOf(openStored(text));
