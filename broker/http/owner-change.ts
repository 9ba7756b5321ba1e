import type { ChangingOwner } from '../audit/record-change.ts';
import type { Context } from './route.ts';

/** How an owner asks: a browser's session comes in a cookie, a program's in the header. */
export function howOf({ request }: Pick<Context, 'request'>): 'console' | 'api' {
  return request.headers.authorization === undefined ? 'console' : 'api';
}

/** Who changes something, for the record, where pipelines may. */
export function changingBy(
  context: Pick<Context<'owner_or_pipeline'>, 'who' | 'request' | 'correlationId'>,
): ChangingOwner {
  const { who, correlationId } = context;
  if (who.kind === 'owner') return { owner: who.owner, how: howOf(context), correlationId };
  return { owner: who.pipeline, how: 'pipeline', correlationId };
}

/** Who changes something, for the record. */
export const changingOwner = (context: Pick<Context<'owner'>, 'who' | 'request' | 'correlationId'>): ChangingOwner => ({
  owner: context.who.owner,
  how: howOf(context),
  correlationId: context.correlationId,
});
