/** The column `flags` of audit rows: facts about a call or an event that have no column of their own. */
import { z } from 'zod';
import type { AuditRow } from '../store/audit.ts';
import { openMembers, openStored } from '../store/open-json.ts';
import { readStored } from '../store/stored-json.ts';

/** Who changed something, and how (`OwnersChange`). Further members depend on the event. */
export const NotedChange = z.looseObject({ by: z.string(), how: z.string() });

/** The members that the broker itself reads back. All others are only displayed, or included in receipts. */
export const AuditFlags = z.looseObject({
  /** For a call of a child agent: its parent. */
  parent: z.string().exactOptional(),
  /** Who decided on the held call (`ApprovalProvenance`). */
  approval: z.looseObject({ decided_by: z.string(), decided_at: z.string(), how: z.string() }).exactOptional(),
  standing_approval: z.looseObject({ id: z.string() }).exactOptional(),
  /** The caller for whom the agent made the call (`RecordedCaller`). */
  caller: z
    .looseObject({
      verified: z.boolean(),
      person_id: z.string().exactOptional(),
      named_by: z.string().exactOptional(),
    })
    .exactOptional(),
  change: NotedChange.exactOptional(),
  /** Whether the body of the platform's answer reports a failure. */
  failed: z.boolean().optional(),
  /** How a streamed answer ended. */
  ended: z.string().optional(),
  /** `unknown`: it is not known whether the platform acted. */
  outcome: z.string().optional(),
});
export type AuditFlags = z.infer<typeof AuditFlags>;

type Flagged = Pick<AuditRow, 'flags'>;

/** Serialises flags for the column. */
export const flagsText = (flags: AuditFlags): string => JSON.stringify(flags);

/** Adds flags to a row that is not signed yet. */
export function addFlags(row: Flagged, flags: AuditFlags): void {
  row.flags = flagsText({ ...openMembers(row.flags), ...flags });
}

/**
 * Parses the flags of a row. `id`: the row's id, for the error.
 *
 * @throws Error that names the row, when its flags were altered and no longer have their schema
 */
export const readFlags = ({ id, flags }: Flagged & { id: string }): AuditFlags =>
  readFlagsAs(AuditFlags, { id, flags });

/** Parses flags as `readFlags` does, with an extended schema, for events that have more members. */
export const readFlagsAs = <Value>(schema: z.ZodType<Value>, { id, flags }: Flagged & { id: string }): Value =>
  readStored(schema, flags ?? '{}', `flags of audit row ${id}`);

/** Parses flags for listings of many rows; returns an empty object for a row whose flags were altered, instead of throwing. */
export const shownFlags = ({ flags }: Flagged): AuditFlags => AuditFlags.safeParse(openStored(flags)).data ?? {};
