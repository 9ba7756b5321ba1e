/** The answer to an owner who has just signed in here with a browser. */
import { z } from 'zod';
import { beginSession, SESSION_SECONDS, sessionInBrowser } from '../auth/owner-session.ts';
import { sessionCookie } from '../auth/session-cookie.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import { json, type Reply } from './reply.ts';
import type { Context } from './route.ts';

export const SignedInSession = z.object({
  email: z.string(),
  role: z.enum(['admin', 'approver', 'viewer']),
  expires_at: z.iso.datetime(),
});

/**
 * Starts a session of this owner in place of the browser's former one. It is set as a cookie only, so that no script can leak it. `prove`: see
 * `beginSession`.
 */
export async function signedIn(
  { services, request, source, correlationId }: Pick<Context, 'services' | 'request' | 'source' | 'correlationId'>,
  owner: OwnerTable,
  by: 'link' | 'passkey',
  prove?: Parameters<typeof beginSession>[2]['prove'],
): Promise<Reply> {
  const { broker } = services;
  const replaces = await sessionInBrowser(broker, request);
  const session = await beginSession(services, owner, { by, from: source, correlationId, replaces, prove });
  return json(
    200,
    { email: owner.email, role: owner.role, expires_at: new Date(session.expiresAt * 1000).toISOString() },
    { 'Set-Cookie': sessionCookie(session.token, SESSION_SECONDS, broker.baseUrl) },
  );
}
