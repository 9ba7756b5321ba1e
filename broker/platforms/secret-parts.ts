/** Secrets of several named parts, for connections whose credential is more than one text. They are stored as one JSON object. */
import { parseStrictJson } from '../../json/strict.ts';
import { Secret } from '../crypto/secret.ts';
import type { Auth } from './auth.ts';
import { namesKeyId } from './signing-auth.ts';

export type SecretPart = {
  name: string;
  /** Its description, for forms and errors: `the client id`. */
  what: string;
  optional?: true;
  /** Whether it is not secret: it may be shown while it is typed, and in answers. */
  open?: true;
  /** The required form, with a phrase that describes it. */
  form?: readonly [RegExp, string];
};

/** The values by name. */
export type PartValues = Readonly<Record<string, string>>;

const CLIENT: readonly SecretPart[] = [
  { name: 'client_id', what: 'the client id', open: true },
  { name: 'client_secret', what: 'the client secret' },
];
/** The members of the key file of a Google service account. */
const ACCOUNT: readonly SecretPart[] = [
  { name: 'client_email', what: 'the e-mail address of the account', open: true },
  { name: 'private_key', what: 'its private key: RSA, in PEM' },
  { name: 'private_key_id', what: 'the id of the key', optional: true, open: true },
];

/** For values that become part of a header. */
const IN_HEADER = [/^[\x21-\x7e]+$/, 'printable ASCII without spaces'] as const;
/** For the key id in the header, where a slash or a comma would end it. */
const ACCESS_KEY = [/^[\w.=+@-]{3,128}$/, 'the id of an access key, such as AKIAIOSFODNN7EXAMPLE'] as const;
const AWS: readonly SecretPart[] = [
  { name: 'access_key_id', what: 'the id of the access key', open: true, form: ACCESS_KEY },
  { name: 'secret_access_key', what: 'the secret of the access key', form: IN_HEADER },
  { name: 'session_token', what: 'the session token of temporary credentials', optional: true, form: IN_HEADER },
];
const KEY_ID: SecretPart = { name: 'key_id', what: 'the id of the key', open: true, form: IN_HEADER };
const KEYS = {
  text: { name: 'key', what: 'the key that signs' },
  hex: { name: 'key', what: 'the key that signs, in hexadecimal', form: [/^(?:[0-9a-f]{2})+$/i, 'hexadecimal'] },
  base64: { name: 'key', what: 'the key that signs, in base64', form: [/^[A-Za-z0-9+/]+={0,2}$/, 'base64'] },
} as const satisfies Record<string, SecretPart>;

/** Kinds of `auth` whose secret has several parts. */
export type PartedAuth = Extract<Auth, { type: 'client_credentials' | 'service_account' | 'aws_sigv4' | 'hmac' }>;

/** Whether the secret for this `auth` has several parts. */
export const isParted = (auth: Auth): auth is PartedAuth => secretPartsOf(auth) !== undefined;

/** The parts of a secret for this `auth`; undefined: the secret is one text. */
export function secretPartsOf(auth: Auth): readonly SecretPart[] | undefined {
  switch (auth.type) {
    case 'client_credentials':
      return CLIENT;
    case 'service_account':
      return ACCOUNT;
    case 'aws_sigv4':
      return AWS;
    case 'hmac':
      return [...(namesKeyId(auth) ? [KEY_ID] : []), KEYS[auth.key_encoding ?? 'text']];
    default:
      return undefined;
  }
}

const MAX_PART_LENGTH = 16 * 1024;

/**
 * Parses a secret of several parts: a JSON object. Unknown members are ignored in the key file of a service account, and refused elsewhere.
 *
 * @returns the values, or a phrase that follows "the secret" and contains nothing of it
 */
export function readSecretParts(
  auth: PartedAuth,
  text: string,
): { ok: true; parts: PartValues } | { ok: false; problem: string } {
  const expected = secretPartsOf(auth) ?? [];
  const refuse = (problem: string) => ({ ok: false as const, problem });
  const names = expected.map(({ name, optional }) => (optional ? `${name} (optional)` : name)).join(', ');
  const parsed = parseStrictJson(text);
  const value = parsed.ok ? parsed.value : undefined;
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refuse(`has several parts: write a JSON object with ${names}`);
  const given = new Map(Object.entries(value));
  const parts: Record<string, string> = {};
  for (const { name, what, optional, form: [form, expectedForm] = [] } of expected) {
    const part = given.get(name);
    given.delete(name);
    if (part === undefined && optional) continue;
    if (part === undefined) return refuse(`has no ${name}, which is ${what}; its parts are ${names}`);
    if (typeof part !== 'string' || part === '') return refuse(`has the part ${name}, which is empty, or no text`);
    if (part.length > MAX_PART_LENGTH)
      return refuse(`has the part ${name}, which is of more than ${MAX_PART_LENGTH} characters`);
    if (!part.isWellFormed()) return refuse(`has the part ${name}, which is not well-formed text`);
    if (form && !form.test(part)) return refuse(`has the part ${name}, which is not ${expectedForm}`);
    parts[name] = part;
  }
  if (given.size > 0 && auth.type !== 'service_account')
    return refuse(`has ${given.size === 1 ? 'a part' : 'parts'} other than ${names}; leave them out`);
  return { ok: true, parts };
}

/** A secret that was given by the names of its parts; its value is the text that is stored. */
export class SecretOfParts extends Secret {
  constructor(parts: PartValues) {
    super(writeSecretParts(parts));
  }
}

/** Serialises the values to the text that is stored. */
export const writeSecretParts = (parts: PartValues): string => JSON.stringify(parts);
