/**
 * An access token with a limited lifetime, and what a call needs to know about it: of an OAuth connection, or of an App's installation. It
 * is stored sealed, as one text, so that a call needs no further read; for an OAuth connection it is in the column that holds other
 * connections' secrets.
 */
import { z } from 'zod';
import { Secret } from '../crypto/secret.ts';
import type { Instant } from '../policy/facts.ts';

/** Marks an access token. A secret entered by an owner cannot begin like this, because headers cannot carry NUL. */
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

export type AccessToken = {
  token: Secret;
  /** Unique per token. For an OAuth connection its `token_id`. */
  id: string;
  issuedAt: Instant;
  /** From this time on it is refreshed before use; null: refreshed only when the upstream refuses it. */
  refreshAt: Instant | null;
  /** When it expires; null: unknown. */
  expiresAt: Instant | null;
  /** Whether a new token can be obtained without a person. */
  refreshable: boolean;
  /** The consent was revoked (the refresh failed permanently): a person has to connect again. */
  lapsed: boolean;
};

export function writeCredential(credential: AccessToken): string {
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

/** Parses a stored credential. Undefined when the text is a plain secret and not an access token. */
export function readCredential(text: string): AccessToken | undefined {
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

/** A token is not used this shortly before it expires: a clone may take minutes, and clocks differ. */
export const MARGIN_MS = 5 * 60_000;
/** Shorter lifetimes, which some servers report for tokens that do not expire, count as unknown: otherwise every call would refresh. */
const SHORTEST_MS = 2_000;
const MAX_DURATION_MS = 366 * 24 * 3600_000;

/** Returns when a token issued now has to be refreshed, and when it expires. `seconds`: `expires_in`, if the server sent it. */
export function lifeOf(
  seconds: number | undefined,
  now: Instant,
): Pick<AccessToken, 'issuedAt' | 'refreshAt' | 'expiresAt'> {
  const ms = seconds === undefined ? undefined : Math.min(Math.floor(seconds) * 1000, MAX_DURATION_MS);
  if (ms === undefined || ms < SHORTEST_MS) return { issuedAt: now, refreshAt: null, expiresAt: null };
  return { issuedAt: now, refreshAt: now + ms - Math.min(MARGIN_MS, ms / 4), expiresAt: now + ms };
}

/** A 401 to a token younger than this is not about the token. */
const RECENTLY_ISSUED_MS = 30_000;

/** Whether the token was issued just now: for a short-lived token, within half of its lifetime. */
export const isJustIssued = ({ issuedAt, expiresAt }: AccessToken, now: Instant): boolean =>
  now - issuedAt < Math.min(RECENTLY_ISSUED_MS, expiresAt === null ? RECENTLY_ISSUED_MS : (expiresAt - issuedAt) / 2);

/** Whether the access token has expired. */
export const isExpired = ({ expiresAt }: AccessToken, now: Instant): boolean => expiresAt !== null && expiresAt <= now;
