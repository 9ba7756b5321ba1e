/** How long audit rows are kept: the setting in the API, governance files and the store. */
import { z } from 'zod';

/** Longer than any held call waits, so that no row of a call that may still continue is deleted. */
export const MIN_DAYS = 31;
const MAX_DAYS = 36_500;

const days = z.number().int().min(MIN_DAYS).max(MAX_DAYS).nullable().default(null);

/** Days after which rows of a kind are deleted; null: never. */
export const Retention = z.strictObject({
  reads_days: days.describe('how long allowed calls by GET and HEAD are kept; null: for ever'),
  calls_days: days.describe('how long all other calls are kept; null: for ever'),
  events_days: days.describe('how long changes, decisions and other events are kept; null: for ever'),
});
export type Retention = z.output<typeof Retention>;

export type RetainedKind = 'reads' | 'calls' | 'events';
export const RETAINED_KINDS: readonly RetainedKind[] = ['reads', 'calls', 'events'];

export const KEEP_ALL: Retention = { reads_days: null, calls_days: null, events_days: null };

/** The reason of the event that records which rows were deleted. The event is kept for ever, as proof of the deletion. */
export const PURGED = 'audit_purged';
