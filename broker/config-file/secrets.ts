/**
 * Resolves the references of a governance file: to secrets, and to files of public keys. They are resolved where the file is
 * read (the command line, or `serve --config`); the broker receives the values and stores them sealed.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { holdsPrivateKey } from '../crypto/public-key.ts';
import { Secret } from '../crypto/secret.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { SecretOfParts } from '../platforms/secret-parts.ts';
import type { PlatformSecretName } from '../token-source/platform-secret.ts';
import { entriesOf, type Governance } from './governance.ts';
import { type Finding, type Path, type Problem, placeFindings } from './problems.ts';
import type { SecretInParts } from './secret-in-parts.ts';

export type Reference = { env: string } | { file: string };

/** The resolved values, by `referenceKey`. */
export type Resolved = ReadonlyMap<string, Secret>;

/** Larger than any key or token; a larger file is the wrong file. */
const MAX_BYTES = 64 * 1024;

/** Returns `env:CRM_TOKEN` or `file:keys/triage.pub.pem`: the key of a resolved value, and the stored origin of a secret. */
export function referenceKey(reference: Reference): string {
  return 'env' in reference ? `env:${reference.env}` : `file:${reference.file}`;
}

/** Whether the parts of a secret have separate references. */
export const isInParts = (secret: SecretInParts): secret is Record<string, Reference> =>
  Object.values(secret).every((one) => typeof one === 'object');

/** Returns the stored form of where the secret of a connection came from. */
export const secretKey = (secret: SecretInParts): string =>
  isInParts(secret) ? `parts:${JSON.stringify(secret)}` : referenceKey(secret);

/** Returns the secret of a connection; undefined when a value is missing. Several parts are combined into one text. */
export function secretIn(values: Resolved, secret: SecretInParts): Secret | undefined {
  if (!isInParts(secret)) return values.get(referenceKey(secret));
  const parts: Record<string, string> = {};
  for (const [name, reference] of Object.entries(secret)) {
    const value = values.get(referenceKey(reference));
    if (value === undefined) return undefined;
    parts[name] = value.reveal();
  }
  return new SecretOfParts(parts);
}

/** Returns the references of a secret whose values are missing. */
export const missingIn = (values: Resolved, secret: SecretInParts): string[] =>
  referencesIn(secret)
    .map(([, reference]) => referenceKey(reference))
    .filter((key) => !values.has(key));

/** Returns the references of a secret, with their paths below it. */
const referencesIn = (secret: SecretInParts): [path: string[], Reference][] =>
  isInParts(secret) ? Object.entries(secret).map(([name, one]) => [[name], one]) : [[[], secret]];

/** Parses what `secretKey` or `referenceKey` returned. */
export function referenceOf(key: string): SecretInParts {
  if (key.startsWith('parts:')) return JSON.parse(key.slice('parts:'.length));
  const at = key.indexOf(':');
  return key.startsWith('env:') ? { env: key.slice(at + 1) } : { file: key.slice(at + 1) };
}

/** Returns the references of a manifest, by their place in `auth`. */
export function platformReferences({ auth }: Manifest): [PlatformSecretName, Reference][] {
  if (auth.type === 'app') return [['private_key', auth.private_key]];
  if (auth.type !== 'oauth2') return [];
  return (['client_id', 'client_secret'] as const).flatMap((name): [PlatformSecretName, Reference][] => {
    const named = auth[name];
    return named === undefined || typeof named === 'string' ? [] : [[name, named]];
  });
}

type Place = { path: Path; reference: Reference };

/** Returns every reference of a document to a secret, with its path. */
export function secretReferences(governance: Governance): Place[] {
  const found: Place[] = [];
  for (const [id, manifest] of governance.manifests)
    for (const [name, reference] of platformReferences(manifest))
      found.push({ path: ['platforms', id, 'auth', name], reference });
  for (const section of ['connections', 'channels', 'audit_sinks'] as const)
    for (const [name, { secret }] of entriesOf<{ secret?: SecretInParts | undefined }>(governance.document[section]))
      for (const [below, reference] of secret ? referencesIn(secret) : [])
        found.push({ path: [section, name, 'secret', ...below], reference });
  return found;
}

/** Returns every reference of a document, with its path. */
export const listReferences = (governance: Governance): Place[] => [
  ...secretReferences(governance),
  ...keyReferences(governance),
];

/** Returns every reference of a document to the file of a public key, with its path. */
function keyReferences(governance: Governance): Place[] {
  return entriesOf(governance.document.agents).flatMap(([name, { public_key: key }]) =>
    key && 'file' in key ? [{ path: ['agents', name, 'public_key'], reference: { file: key.file } }] : [],
  );
}

const PRIVATE_KEY =
  'this file holds a private key, which never leaves the agent; it was not sent. Name a file with the public key: openssl pkey -in agent.key -pubout -out agent.pub.pem';

/**
 * Resolves every reference, or with `secrets: false` only those to public keys. File paths are relative to `baseFolder`, the folder of the governance
 * file; one trailing line break is removed from a value. Returns all problems together, and none of them contains a value.
 */
export function resolveReferences(
  governance: Governance,
  baseFolder: string,
  environment: Readonly<Record<string, string | undefined>>,
  { secrets = true }: { secrets?: boolean } = {},
): { ok: true; values: Map<string, Secret> } | { ok: false; problems: Problem[] } {
  const values = new Map<string, Secret>();
  const findings: Finding[] = [];
  const keys = new Set(keyReferences(governance));
  for (const place of secrets ? [...secretReferences(governance), ...keys] : keys) {
    const { path, reference } = place;
    const key = referenceKey(reference);
    const known = values.get(key);
    const read = known
      ? { text: known.reveal() }
      : 'env' in reference
        ? readVariable(reference.env, environment)
        : readFile(baseFolder, reference.file);
    if ('problem' in read) findings.push({ path, message: read.problem });
    else if (keys.has(place) && holdsPrivateKey(read.text)) findings.push({ path, message: PRIVATE_KEY });
    else values.set(key, new Secret(read.text));
  }
  if (findings.length > 0) return { ok: false, problems: placeFindings(governance.source, findings) };
  return { ok: true, values };
}

type Read = { text: string } | { problem: string };

function readVariable(name: string, environment: Readonly<Record<string, string | undefined>>): Read {
  const text = Object.hasOwn(environment, name) ? environment[name] : undefined;
  if (text === undefined) return { problem: `the environment variable ${name} is not set where this file is read.` };
  return checked(text, `the environment variable ${name}`);
}

function readFile(baseFolder: string, file: string): Read {
  const path = resolve(baseFolder, file);
  const what = `the file ${path}`;
  let descriptor: number;
  try {
    // Opening a pipe would otherwise block until it has a writer.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? 'there is none' : code === 'EACCES' ? 'it may not be read' : String(code);
    return { problem: `${what} cannot be read: ${why}.` };
  }
  try {
    const facts = fstatSync(descriptor);
    if (!facts.isFile()) return { problem: `${what} is no plain file.` };
    if (facts.size > MAX_BYTES) return { problem: `${what} is larger than 64 KiB; no key or token is.` };
    const bytes = Buffer.alloc(MAX_BYTES);
    const length = readSync(descriptor, bytes, 0, MAX_BYTES, 0);
    return checked(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, length)), what);
  } catch {
    return { problem: `${what} is not text in UTF-8.` };
  } finally {
    closeSync(descriptor);
  }
}

function checked(text: string, what: string): Read {
  const value = text.replace(/\r?\n$/, '');
  if (value.trim() === '') return { problem: `${what} is empty.` };
  if (value.length > MAX_BYTES) return { problem: `${what} is larger than 64 KiB; no key or token is.` };
  if (value.includes('\0') || !value.isWellFormed()) return { problem: `${what} holds something that is no text.` };
  return { text: value };
}
