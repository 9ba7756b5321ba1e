/** The person for whom a held call is made, as owners are shown it: how the person was identified, never the identity itself. */
import { readFlags } from '../audit/audit-flags.ts';
import type { RecordedCaller } from '../audit/outcome.ts';
import type { HeldCall } from '../store/held-calls.ts';

export type HeldPerson = {
  identity: 'verified' | 'asserted';
  /** The issuer that verified the person, or the source in whose name the agent asserts them; null: not recorded. */
  named_by: string | null;
  /** A random id. */
  person_id: string | null;
};

/** Null: the call is not made for a person. */
export const shownPerson = (caller: RecordedCaller | undefined): HeldPerson | null =>
  caller === undefined
    ? null
    : {
        identity: caller.verified ? 'verified' : 'asserted',
        named_by: caller.named_by ?? null,
        person_id: caller.person_id ?? null,
      };

/** Reads the person from the audit row of the hold, without opening the request. @throws Error when the row was altered so that it cannot be read */
export const personOnRecord = ({
  audit_id: id,
  held_flags: flags,
}: Pick<HeldCall, 'audit_id' | 'held_flags'>): HeldPerson | null => shownPerson(readFlags({ id, flags }).caller);
