/** For whom a held call is, as owners are shown it: how somebody is known, and never who. */
import { z } from 'zod';
import type { RecordedCaller } from '../audit/outcome.ts';
import type { HeldCall } from '../store/held-calls.ts';
import { readStored } from '../store/stored-json.ts';

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

const Flags = z.looseObject({
  caller: z
    .looseObject({
      verified: z.boolean(),
      person_id: z.string().exactOptional(),
      named_by: z.string().exactOptional(),
    })
    .exactOptional(),
});

/** From the audit row of the hold, without opening the request. @throws Error when the row was altered so that it cannot be read */
export const personOnRecord = ({ id, held_flags }: Pick<HeldCall, 'id' | 'held_flags'>): HeldPerson | null =>
  shownPerson(held_flags === null ? undefined : readStored(Flags, held_flags, `row of the held call ${id}`).caller);
