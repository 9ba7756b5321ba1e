/**
 * An App gets a token of one of its installations, which may be limited to repositories and permissions (GitHub REST API, "Create an
 * installation access token for an app").
 */
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import type { Broker } from '../broker.ts';
import { Secret } from '../crypto/secret.ts';
import { SHORTEST_CREDENTIAL } from '../egress/credential-patterns.ts';
import { isHeaderValue } from '../egress/request-check.ts';
import type { Instant } from '../policy/facts.ts';
import { MARGIN_MS } from './access-token.ts';
import type { AppLimits, Installation } from './app-installation.ts';
import { type AppRefusal, refusalOf } from './app-refusal.ts';
import { askAsApp, jsonOf } from './app-request.ts';

export type Exchanged =
  | { kind: 'token'; token: Secret; expiresAt: Instant }
  /** Nobody but an owner can help. */
  | AppRefusal
  /** Temporary. */
  | { kind: 'unavailable'; code: 'token_unavailable'; detail: string };

const LONGEST_TOKEN = 8 * 1024;
/** Whatever the platform says: a token that is never asked for again is never taken back. */
const LONGEST_LIFE_MS = 3600_000;

/** Goes with every token of GitHub's. */
const ALWAYS = new Set(['metadata']);

const Answer = z.looseObject({
  token: z.string().min(SHORTEST_CREDENTIAL).max(LONGEST_TOKEN).refine(isHeaderValue),
  expires_at: z.iso.datetime({ offset: true }),
  repositories: z.array(z.looseObject({ full_name: z.string() })).optional(),
  permissions: z.record(z.string(), z.string()).optional(),
});

/** Asks once. */
export async function exchange(
  broker: Pick<Broker, 'outbound' | 'clock' | 'log'>,
  installation: Installation,
  key: KeyObject,
  limits: AppLimits,
): Promise<Exchanged> {
  const { platformId } = installation;
  const { repository, permissions } = limits;
  const answer = await askAsApp(broker, installation, key, {
    path: '/access_tokens',
    body: { ...(repository && { repositories: [repository.name] }), ...(permissions && { permissions }) },
  });
  const now = broker.clock();
  const unavailable = (detail: string): Exchanged => ({ kind: 'unavailable', code: 'token_unavailable', detail });
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
  // A platform may add what goes along with a permission, so this is for people to look at.
  const beyond = permissions ? Object.keys(granted).filter((name) => !ALWAYS.has(name) && !permissions[name]) : [];
  if (beyond.length > 0)
    broker.log.warn(
      { platform: platformId, beyond: beyond.slice(0, 20) },
      'a token has more permissions than were asked for',
    );
  const expiresAt = Math.min(Date.parse(end), now + LONGEST_LIFE_MS);
  if (expiresAt - now <= MARGIN_MS)
    return unavailable(`${platformId} issued a token that ends at once. Is the clock of the broker right?`);
  return { kind: 'token', token: new Secret(token), expiresAt };
}

/** Whether the token is for that repository and no other: a platform that ignores what was asked for issues one for all. */
function isOnly(asked: { owner: string; name: string }, got: readonly { full_name: string }[] | undefined): boolean {
  const [first, second] = got ?? [];
  return second === undefined && first?.full_name.toLowerCase() === `${asked.owner}/${asked.name}`.toLowerCase();
}
