/**
 * An access token that ends, with what a call has to know of its life: of an OAuth connection, or of an App's installation. It is
 * stored sealed, in one text, so that a call needs no further read; of an OAuth connection in the column of other connections'
 * secrets.
 */
import { z } from 'zod';
import { Secret } from '../crypto/secret.ts';
import type { Instant } from '../policy/facts.ts';

/** An owner's own secret cannot begin like this: headers cannot carry NUL. */
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
  /** Another one for each token. Of an OAuth connection its `token_id`. */
  id: string;
  issuedAt: Instant;
  /** From this time on it is refreshed before use; null: only when the upstream refuses it. */
  refreshAt: Instant | null;
  /** When it expires; null: unknown. */
  expiresAt: Instant | null;
  /** Whether another one can be had without a person. */
  refreshable: boolean;
  /** The consent was revoked (the refresh failed and will fail again): a person has to connect again. */
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

/** Undefined: the text is no access token but a plain secret. */
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

/** A token is not used so shortly before its end: a clone that begins with it may take minutes, and clocks differ. */
export const MARGIN_MS = 5 * 60_000;
/** What is shorter, as some servers say of tokens that do not end, is taken for unknown: it would mean a refresh for every call. */
const SHORTEST_MS = 2_000;
const LONGEST_MS = 366 * 24 * 3600_000;

/** When a token issued now is to be refreshed, and when it expires. `seconds`: `expires_in`, when the server sent it. */
export function lifeOf(
  seconds: number | undefined,
  now: Instant,
): Pick<AccessToken, 'issuedAt' | 'refreshAt' | 'expiresAt'> {
  const ms = seconds === undefined ? undefined : Math.min(Math.floor(seconds) * 1000, LONGEST_MS);
  if (ms === undefined || ms < SHORTEST_MS) return { issuedAt: now, refreshAt: null, expiresAt: null };
  return { issuedAt: now, refreshAt: now + ms - Math.min(MARGIN_MS, ms / 4), expiresAt: now + ms };
}

/** A platform that refuses a token which was just issued refuses more than the token. */
const JUST_ISSUED_MS = 30_000;

/** Whether the access token was issued just now: at most half its life ago, where that is short. */
export const isJustIssued = ({ issuedAt, expiresAt }: AccessToken, now: Instant): boolean =>
  now - issuedAt < Math.min(JUST_ISSUED_MS, expiresAt === null ? JUST_ISSUED_MS : (expiresAt - issuedAt) / 2);

/** Whether the access token has expired. */
export const isExpired = ({ expiresAt }: AccessToken, now: Instant): boolean => expiresAt !== null && expiresAt <= now;
