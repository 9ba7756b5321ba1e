/**
 * Exchanges an App's JWT for a token of one of its installations, which may be limited to repositories and permissions (GitHub REST API,
 * "Create an installation access token for an app").
 */
import { z } from 'zod';
import type { Broker } from '../broker.ts';
import { Secret } from '../crypto/secret.ts';
import { SHORTEST_CREDENTIAL } from '../egress/credential-search/patterns.ts';
import { isHeaderValue } from '../egress/outbound-request.ts';
import { MARGIN_MS } from './access-token.ts';
import { refusalOf } from './app-refusal.ts';
import { appKeyOf, askAsApp, jsonOf } from './app-request.ts';
import { type Exchanged, unavailable } from './exchanged.ts';
import type { AppTokenRequest } from './token-request.ts';

const MAX_TOKEN_LENGTH = 8 * 1024;
/** Upper bound whatever the platform says: a token that is never requested again is never revoked. */
const MAX_LIFETIME_MS = 3600_000;

/** Permissions that GitHub adds to every token. */
const ALWAYS = new Set(['metadata']);

const Answer = z.looseObject({
  token: z.string().min(SHORTEST_CREDENTIAL).max(MAX_TOKEN_LENGTH).refine(isHeaderValue),
  expires_at: z.iso.datetime({ offset: true }),
  repositories: z.array(z.looseObject({ full_name: z.string() })).optional(),
  permissions: z.record(z.string(), z.string()).optional(),
});

/** Requests one token. */
export async function exchangeAsApp(
  broker: Pick<Broker, 'store' | 'vault' | 'outbound' | 'clock' | 'log'>,
  { installation, limits }: AppTokenRequest,
): Promise<Exchanged> {
  const { platformId } = installation;
  const { repository, permissions } = limits;
  const signer = await appKeyOf(broker, installation);
  if (!signer.ok) return { kind: 'refused', of: 'connection', detail: signer.detail };
  const answer = await askAsApp(broker, installation, signer.key, {
    path: '/access_tokens',
    body: { ...(repository && { repositories: [repository.name] }), ...(permissions && { permissions }) },
  });
  const now = broker.clock();
  if (answer.kind === 'unreachable') return unavailable(`${platformId} issued no token. ${answer.detail}`);
  const { status, body } = answer;
  if (status !== 200 && status !== 201)
    return (
      refusalOf(answer, installation, limits) ??
      unavailable(`${platformId} issued no token: it answered ${status}. Try again shortly.`)
    );
  const read = Answer.safeParse(jsonOf(body));
  if (!read.success) return unavailable(`${platformId} issued no token: its answer cannot be read.`);
  const { token, expires_at: end, repositories, permissions: granted = {} } = read.data;
  if (repository && !isOnly(repository, repositories))
    return {
      kind: 'refused',
      of: 'call',
      detail: `${platformId} issued no token for ${repository.owner}/${repository.name} alone. The repository was renamed, or the App is installed at another account; an owner corrects the grant, or the installation of the connection.`,
    };
  // A platform may add permissions that others imply, so this is only logged.
  const beyond = permissions ? Object.keys(granted).filter((name) => !ALWAYS.has(name) && !permissions[name]) : [];
  if (beyond.length > 0)
    broker.log.warn(
      { platform: platformId, beyond: beyond.slice(0, 20) },
      'a token has more permissions than requested',
    );
  const expiresAt = Math.min(Date.parse(end), now + MAX_LIFETIME_MS);
  if (expiresAt - now <= MARGIN_MS)
    return unavailable(`${platformId} issued a token that expires immediately. Is the clock of the broker correct?`);
  return { kind: 'token', token: new Secret(token), life: { refreshAt: expiresAt - MARGIN_MS, expiresAt } };
}

/** Whether the token is for exactly that repository: a platform that ignores the limit issues one for all repositories. */
function isOnly(asked: { owner: string; name: string }, got: readonly { full_name: string }[] | undefined): boolean {
  const [first, second] = got ?? [];
  return second === undefined && first?.full_name.toLowerCase() === `${asked.owner}/${asked.name}`.toLowerCase();
}
