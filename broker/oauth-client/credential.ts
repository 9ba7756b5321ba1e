/**
 * The credential of a connection that a person made through OAuth, as it is stored (and sealed) where other connections
 * store their secret: the access token with what a call has to know of it. So a call reads nothing more.
 */
import { z } from 'zod';
import { Secret } from '../crypto/secret.ts';
import type { Instant } from '../policy/facts.ts';

/** No secret that an owner gives can begin like this: no header carries a NUL. */
const MARK = '\0oauth\n';

const Stored = z.strictObject({
  token: z.string(),
  id: z.string(),
  issued_at: z.number(),
  refresh_at: z.number().nullable(),
  expires_at: z.number().nullable(),
  refreshable: z.boolean(),
  lapsed: z.boolean(),
});

export type OAuthCredential = {
  token: Secret;
  /** Which tokens these are: the connection's `token_id`. */
  id: string;
  issuedAt: Instant;
  /** From when on it is refreshed before it is used; null: when the upstream refuses it. */
  refreshAt: Instant | null;
  /** From when on it is good for nothing; null: nobody said. */
  expiresAt: Instant | null;
  /** Whether there is a refresh token. */
  refreshable: boolean;
  /** The server has ended the consent: a person has to connect again. */
  lapsed: boolean;
};

export function writeCredential(credential: OAuthCredential): string {
  const { token, id, issuedAt, refreshAt, expiresAt, refreshable, lapsed } = credential;
  const stored: z.input<typeof Stored> = {
    token: token.reveal(),
    id,
    issued_at: issuedAt,
    refresh_at: refreshAt,
    expires_at: expiresAt,
    refreshable,
    lapsed,
  };
  return MARK + JSON.stringify(stored);
}

/** Undefined: the text is a secret that an owner gave. */
export function readCredential(text: string): OAuthCredential | undefined {
  if (!text.startsWith(MARK)) return undefined;
  const stored = Stored.parse(JSON.parse(text.slice(MARK.length)));
  return {
    token: new Secret(stored.token),
    id: stored.id,
    issuedAt: stored.issued_at,
    refreshAt: stored.refresh_at,
    expiresAt: stored.expires_at,
    refreshable: stored.refreshable,
    lapsed: stored.lapsed,
  };
}

const MARGIN_MS = 60_000;
/** A shorter life than this would mean a refresh for every call. */
const SHORTEST_MS = 20_000;
const LONGEST_MS = 366 * 24 * 3600_000;

/** When a token that was issued now is refreshed and when it ends. `seconds`: its life as the server says it, if it does. */
export function lifeOf(
  seconds: number | undefined,
  now: Instant,
): Pick<OAuthCredential, 'issuedAt' | 'refreshAt' | 'expiresAt'> {
  const ms = seconds === undefined ? undefined : Math.min(Math.floor(seconds) * 1000, LONGEST_MS);
  if (ms === undefined || ms < SHORTEST_MS) return { issuedAt: now, refreshAt: null, expiresAt: null };
  return { issuedAt: now, refreshAt: now + ms - Math.min(MARGIN_MS, ms / 4), expiresAt: now + ms };
}

/** Whether it can no longer be used by itself. */
export const isOver = ({ expiresAt }: OAuthCredential, now: Instant): boolean => expiresAt !== null && expiresAt <= now;
