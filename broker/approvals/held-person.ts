/** For whom a held call is, as owners are shown it: how somebody is known, and never who. */
import { readFlags } from '../audit/audit-flags.ts';
import type { RecordedCaller } from '../audit/outcome.ts';
import type { HeldCall } from '../store/held-calls.ts';

export type HeldPerson = {
  identity: 'verified' | 'asserted';
  /** The issuer that verified it, or the source in whose name the agent says it; null: not recorded. */
  named_by: string | null;
  /** Random. */
  person_id: string | null;
};

/** Null: for nobody in particular. */
export const shownPerson = (caller: RecordedCaller | undefined): HeldPerson | null =>
  caller === undefined
    ? null
    : {
        identity: caller.verified ? 'verified' : 'asserted',
        named_by: caller.named_by ?? null,
        person_id: caller.person_id ?? null,
      };

/** From the audit row of the hold, without opening the request. @throws Error when the row was altered so that it cannot be read */
export const personOnRecord = ({
  audit_id: id,
  held_flags: flags,
}: Pick<HeldCall, 'audit_id' | 'held_flags'>): HeldPerson | null => shownPerson(readFlags({ id, flags }).caller);
