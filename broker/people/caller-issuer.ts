/** Issuers whose assertions about people an organisation trusts. */
import { z } from 'zod';
import { ISSUER_ALGORITHMS } from '../crypto/issuer-algorithms.ts';
import { PlatformUrl } from '../platforms/fields.ts';
import { readStored } from '../store/stored-json.ts';

/** Addresses for which http is allowed: loopback only (RFC 8252 section 8.3). */
const LOOPBACK = /^http:\/\/(localhost|127(\.\d+){3}|\[::1\])(:\d+)?(\/|$)/;
/** The address of an issuer, or of its keys. */
export const IssuerUrl = PlatformUrl.refine(
  (url) => url.startsWith('https:') || LOOPBACK.test(url),
  'must be https; http only on loopback',
);

export const CallerIssuer = z
  .strictObject({
    issuer: IssuerUrl.describe('The issuer, exactly as in `iss`.'),
    audience: z.string().min(1).max(500).describe('The required value of `aud`.'),
    jwks_uri: IssuerUrl.optional().describe('Where its keys are; found by discovery when it is not given.'),
    algorithms: z
      .array(z.enum(ISSUER_ALGORITHMS))
      .min(1, 'is empty, so nothing could be verified')
      .optional()
      .describe('Which algorithms it signs with; all asymmetric ones when it is not given.'),
    claim: z
      .string()
      .regex(/^[A-Za-z0-9_.:/-]{1,128}$/, 'write the name of a claim')
      .optional()
      .describe('The claim that says who it is, which must never be given to another person. Default: `sub`.'),
    client_id: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe(
        'The broker’s client id there, a public client with PKCE: people sign in with it before they consent. Without it assertions work for people who have consented, and nobody can consent.',
      ),
  })
  .describe('An identity provider whose assertions about the person behind a call are believed.');
export type CallerIssuer = z.infer<typeof CallerIssuer>;

/** The scopes for claims of ID tokens (OpenID Connect Core section 5.4). */
const SCOPES: ReadonlyMap<string, string> = new Map([
  ['sub', 'openid'],
  ['email', 'openid email'],
  ['phone_number', 'openid phone'],
]);

/**
 * Returns the scope for which issuers put the identifying claim into ID tokens: `profile` for claims that the standard does not know, such as
 * `oid`, which Microsoft Entra returns for that scope only.
 */
export const signInScope = ({ claim = 'sub' }: Pick<CallerIssuer, 'claim'>): string =>
  SCOPES.get(claim) ?? 'openid profile';

export const CallerIssuers = z
  .array(CallerIssuer)
  .max(50)
  .refine(
    (issuers) => new Set(issuers.map(({ issuer }) => issuer)).size === issuers.length,
    'names an issuer twice; list each once',
  )
  .describe('Whose assertions about the person behind a call are believed.');

/** Parses an organisation's column. @throws Error when it was altered */
export const readCallerIssuers = (text: string | null): CallerIssuer[] =>
  text === null ? [] : readStored(CallerIssuers, text, 'caller_issuers');
