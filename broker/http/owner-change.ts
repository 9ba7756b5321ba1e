import { type Change, recordChange } from '../audit/record-change.ts';
import type { JsonObject } from '../policy/facts.ts';
import type { Db } from '../store/store.ts';
import type { Context } from './route.ts';

/** How an owner asks: a browser's session comes in a cookie, a program's in the header. */
export function howOf({ request }: Pick<Context, 'request'>): 'console' | 'api' {
  return request.headers.authorization === undefined ? 'console' : 'api';
}

/** Makes a change for the owner who asks, on record (see `recordChange`). A Refusal that `make` throws is the answer. */
export async function ownerChange<Made>(
  context: Pick<Context<'owner'>, 'services' | 'who' | 'correlationId' | 'request'>,
  change: Change,
  make: (db: Db, note: (facts: JsonObject) => void, auditId: string) => Promise<Made>,
): Promise<Made> {
  const { services, who, correlationId } = context;
  return await recordChange(services, { owner: who.owner, how: howOf(context), correlationId }, change, make);
}
