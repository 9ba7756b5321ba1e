/** The column `flags` of audit rows: what is said of a call or an event beside the other columns. */
import { z } from 'zod';
import type { AuditRow } from '../store/audit.ts';
import { openMembers, openStored } from '../store/open-json.ts';
import { readStored } from '../store/stored-json.ts';

/** Who changed something, and how (`OwnersChange`); what else is noted depends on the event. */
export const NotedChange = z.looseObject({ by: z.string(), how: z.string() });

/** The members that are read again. Others are there for people, and for receipts. */
export const AuditFlags = z.looseObject({
  /** Of a child: the agent it is of. */
  parent: z.string().exactOptional(),
  /** Who decided on the held call (`ApprovalProvenance`). */
  approval: z.looseObject({ decided_by: z.string(), decided_at: z.string(), how: z.string() }).exactOptional(),
  standing_approval: z.looseObject({ id: z.string() }).exactOptional(),
  /** For whom the call was (`RecordedCaller`). */
  caller: z
    .looseObject({
      verified: z.boolean(),
      person_id: z.string().exactOptional(),
      named_by: z.string().exactOptional(),
    })
    .exactOptional(),
  change: NotedChange.exactOptional(),
  /** The platform's answer says in its body that the call failed. */
  failed: z.boolean().optional(),
  /** How a streamed answer ended. */
  ended: z.string().optional(),
  /** `unknown`: nobody knows whether the platform acted. */
  outcome: z.string().optional(),
});
export type AuditFlags = z.infer<typeof AuditFlags>;

type Flagged = Pick<AuditRow, 'flags'>;

/** What the column holds. */
export const flagsText = (flags: AuditFlags): string => JSON.stringify(flags);

/** Adds to what a row says that is not signed yet. */
export function addFlags(row: Flagged, flags: AuditFlags): void {
  row.flags = flagsText({ ...openMembers(row.flags), ...flags });
}

/**
 * What a row says. `id`: of the row, for the error.
 *
 * @throws Error that names the row, when it was altered so that it says something else
 */
export const readFlags = ({ id, flags }: Flagged & { id: string }): AuditFlags =>
  readFlagsAs(AuditFlags, { id, flags });

/** The same of an event that notes more. `schema`: AuditFlags, extended. */
export const readFlagsAs = <Value>(schema: z.ZodType<Value>, { id, flags }: Flagged & { id: string }): Value =>
  readStored(schema, flags ?? '{}', `flags of audit row ${id}`);

/** What a row says, for who looks at many: nothing of one that was altered. */
export const shownFlags = ({ flags }: Flagged): AuditFlags => AuditFlags.safeParse(openStored(flags)).data ?? {};
