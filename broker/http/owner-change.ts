import type { ChangingOwner } from '../audit/record-change.ts';
import type { Context } from './route.ts';

/** How an owner's request is authenticated: the session of a browser is a cookie, that of a program an Authorization header. */
export function howOf({ request }: Pick<Context, 'request'>): 'console' | 'api' {
  return request.headers.authorization === undefined ? 'console' : 'api';
}

/** Returns the author of a change for the audit, on routes that pipelines may use. */
export function changingBy(
  context: Pick<Context<'owner_or_pipeline'>, 'who' | 'request' | 'correlationId'>,
): ChangingOwner {
  const { who, correlationId } = context;
  if (who.kind === 'owner') return { owner: who.owner, session: who.session.marks, how: howOf(context), correlationId };
  return { owner: who.pipeline, how: 'pipeline', correlationId };
}

/** Returns the author of a change for the audit. */
export const changingOwner = (context: Pick<Context<'owner'>, 'who' | 'request' | 'correlationId'>): ChangingOwner => ({
  owner: context.who.owner,
  session: context.who.session.marks,
  how: howOf(context),
  correlationId: context.correlationId,
});
