/**
 * Lenient parsing of JSON columns for displaying, exporting or signing rows: one row that was altered outside of the broker must not hide the
 * others. Columns that decisions depend on are parsed with their schema instead (stored-json.ts).
 */
import type { JsonObject } from '../policy/facts.ts';

/** Parses a column; null when it is null or not JSON. */
export function openStored(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns the members of an object, in their order; an empty object for any other value. */
export const membersOf = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null ? { ...value } : {};

/** Parses a column that holds an object, and returns its members. */
export const openMembers = (text: string | null): JsonObject => membersOf(openStored(text));
