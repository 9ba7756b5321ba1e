import type { ChangingOwner } from '../audit/record-change.ts';
import type { OwnerPrincipal } from '../auth/principal.ts';
import type { Context } from './route.ts';

/** How an owner's request is authenticated: the session of a browser is a cookie, that of a program an Authorization header. */
export function howOf({ request }: Pick<Context, 'request'>): 'console' | 'api' {
  return request.headers.authorization === undefined ? 'console' : 'api';
}

/** The request of an owner. */
type Changing = Pick<Context, 'request' | 'correlationId'> & { who: OwnerPrincipal };

/** Returns the author of a change for the audit, on routes that pipelines may use. */
export function changingBy(
  context: Pick<Context<'owner_or_pipeline'>, 'who' | 'request' | 'correlationId'>,
): ChangingOwner {
  const { who, request, correlationId } = context;
  if (who.kind === 'owner') return changingOwner({ who, request, correlationId });
  return { owner: who.pipeline, how: 'pipeline', correlationId };
}

/** Returns the author of a change for the audit. */
export const changingOwner = (context: Changing) => ({
  owner: context.who.owner,
  session: context.who.session.marks,
  how: howOf(context),
  correlationId: context.correlationId,
});
