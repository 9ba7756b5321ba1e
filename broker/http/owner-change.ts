import { type Change, type ChangingOwner, recordChange } from '../audit/record-change.ts';
import type { JsonObject } from '../policy/facts.ts';
import type { Db } from '../store/store.ts';
import type { Context } from './route.ts';

/** How an owner asks: a browser's session comes in a cookie, a program's in the header. */
export function howOf({ request }: Pick<Context, 'request'>): 'console' | 'api' {
  return request.headers.authorization === undefined ? 'console' : 'api';
}

/** Who changes something, for the record. */
export const changingOwner = (context: Pick<Context<'owner'>, 'who' | 'request' | 'correlationId'>): ChangingOwner => ({
  owner: context.who.owner,
  how: howOf(context),
  correlationId: context.correlationId,
});

/** Makes a change for the owner who asks, on record (see `recordChange`). A Refusal that `make` throws is the answer. */
export async function ownerChange<Made>(
  context: Pick<Context<'owner'>, 'services' | 'who' | 'correlationId' | 'request'>,
  change: Change,
  make: (db: Db, note: (facts: JsonObject) => void, auditId: string) => Promise<Made>,
): Promise<Made> {
  return await recordChange(context.services, changingOwner(context), change, make);
}
