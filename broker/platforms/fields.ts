/** Field types of a manifest: URLs, header names, references to secrets. Each error says what to write instead. */
import { z } from 'zod';

/** As Node's `validateHeaderName` (RFC 9110 §5.6.2, token). */
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/;
/** Hop-by-hop headers (RFC 9110 §7.6.1), and headers that only the HTTP client or the broker may set. */
const RESERVED_HEADERS = new Set(
  `connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer transfer-encoding upgrade
  host cookie content-length content-type content-encoding expect forwarded via`.split(/\s+/),
);
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** A reference to a secret; the secret itself is never written in a manifest. */
export const SecretReference = z
  .union(
    [
      z.strictObject({
        env: z
          .string()
          .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'write the name of an environment variable')
          .describe('Name of the environment variable that holds the secret.'),
      }),
      z.strictObject({ file: z.string().min(1).describe('Path of the file that holds the secret.') }),
    ],
    { error: 'write { env: NAME } or { file: PATH }; a secret itself is never written here' },
  )
  .describe('Where a secret is found: an environment variable or a file, read when the file is applied.');
export type SecretReference = z.infer<typeof SecretReference>;

/** URL of a platform: https, or http on loopback only, in canonical form. */
export const PlatformUrl = z.string().superRefine((text, context) => {
  const problem = urlProblem(text);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
});

/** The name of any header. */
export const HeaderName = z.string().regex(HEADER_NAME, 'is not the name of a header');

/** The name of a header that is sent with every call. */
export const PlatformHeaderName = z.string().superRefine((name, context) => {
  const problem = headerProblem(name);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
});

/** RFC 9110 §5.5, without control characters and non-ASCII bytes, which implementations treat differently. */
export const HeaderValue = z
  .string()
  .max(1024)
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, 'write printable ASCII without spaces at the ends');

/** A record that reports the message of the key's schema for an invalid key, not "invalid key". */
export function recordOf<Value extends z.ZodType>(key: z.ZodString, value: Value) {
  return z.record(key, value, {
    error: (issue) => (issue.code === 'invalid_key' ? issue.issues[0]?.message : undefined),
  });
}

function urlProblem(text: string): string | undefined {
  if (!URL.canParse(text)) return 'is not an address; write "https://host/path"';
  const url = new URL(text);
  if (url.username !== '' || url.password !== '')
    return 'holds a user name or password; leave it out, and give the credential as a secret';
  if (/[?#]/.test(text)) return 'holds a query or a fragment; write the part before it';
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && LOOPBACK.test(url.hostname))) {
    return 'must begin with "https://"; "http://" is accepted for this machine only (localhost, 127.0.0.1, [::1])';
  }
  if (url.hostname.endsWith('.')) return 'has a host name that ends in a dot; leave the dot out';
  // RFC 2606 §2: a reserved TLD, which built-in manifests use where each customer has a host of its own.
  if (url.hostname.endsWith('.invalid')) return 'is a placeholder; write the address of your own site';
  if (url.href !== text && url.href !== `${text}/`) return `is not in normal form; write "${url.href}"`;
  return url.pathname.includes('//') ? 'holds an empty path segment ("//"); leave it out' : undefined;
}

function headerProblem(name: string): string | undefined {
  if (!HEADER_NAME.test(name)) return 'is not the name of a header';
  const lower = name.toLowerCase();
  if (RESERVED_HEADERS.has(lower) || lower.startsWith('x-svc-') || lower.startsWith('x-forwarded-')) {
    return `"${name}" belongs to the connection or to the broker; it cannot be set by a platform`;
  }
  return undefined;
}

/** RFC 6901, with `*` for every element of a list or member of an object. */
export const JsonPointer = z
  .string()
  .regex(/^(?:\/(?:[^~/]|~[01])*)+$/, 'write a JSON pointer such as "/to" or "/cc/*"');
