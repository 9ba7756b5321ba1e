/**
 * What a governance file names instead of writing it: secrets, and the files of public keys. They are read where the file
 * is read (the command line, or `serve --config`); the broker gets the values and keeps them sealed.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { Secret } from '../crypto/secret.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { writeSecretParts } from '../platforms/secret-parts.ts';
import type { PlatformSecretName } from '../token-source/platform-secret.ts';
import { entriesOf, type Governance } from './governance.ts';
import { type Finding, type Path, type Problem, placeFindings } from './problems.ts';
import type { SecretInParts } from './secret-in-parts.ts';

export type Reference = { env: string } | { file: string };

/** The values of references, by `referenceKey`. */
export type Resolved = ReadonlyMap<string, Secret>;

/** More than any key or token; what is larger is the wrong file. */
const MAX_BYTES = 64 * 1024;

/** `env:CRM_TOKEN` or `file:keys/triage.pub.pem`: how values are keyed, and how the store remembers where one came from. */
export function referenceKey(reference: Reference): string {
  return 'env' in reference ? `env:${reference.env}` : `file:${reference.file}`;
}

/** Whether each part of a secret has a reference of its own. */
export const isInParts = (secret: SecretInParts): secret is Record<string, Reference> =>
  Object.values(secret).every((one) => typeof one === 'object');

/** How the store remembers where the secret of a connection came from. */
export const secretKey = (secret: SecretInParts): string =>
  isInParts(secret) ? `parts:${JSON.stringify(secret)}` : referenceKey(secret);

/** The secret of a connection; undefined: a value was not given. Of several parts it is the text that holds them all. */
export function secretIn(values: Resolved, secret: SecretInParts): Secret | undefined {
  if (!isInParts(secret)) return values.get(referenceKey(secret));
  const parts: Record<string, string> = {};
  for (const [name, reference] of Object.entries(secret)) {
    const value = values.get(referenceKey(reference));
    if (value === undefined) return undefined;
    parts[name] = value.reveal();
  }
  return new Secret(writeSecretParts(parts));
}

/** References of a secret whose values were not given. */
export const missingIn = (values: Resolved, secret: SecretInParts): string[] =>
  referencesIn(secret)
    .map(([, reference]) => referenceKey(reference))
    .filter((key) => !values.has(key));

/** Its references, with where they stand below it. */
const referencesIn = (secret: SecretInParts): [path: string[], Reference][] =>
  isInParts(secret) ? Object.entries(secret).map(([name, one]) => [[name], one]) : [[[], secret]];

/** What `secretKey` or `referenceKey` wrote. */
export function referenceOf(key: string): SecretInParts {
  if (key.startsWith('parts:')) return JSON.parse(key.slice('parts:'.length));
  const at = key.indexOf(':');
  return key.startsWith('env:') ? { env: key.slice(at + 1) } : { file: key.slice(at + 1) };
}

/** What a manifest names instead of writing it, by its place in `auth`. */
export function platformReferences({ auth }: Manifest): [PlatformSecretName, Reference][] {
  if (auth.type === 'app') return [['private_key', auth.private_key]];
  if (auth.type !== 'oauth2') return [];
  return (['client_id', 'client_secret'] as const).flatMap((name): [PlatformSecretName, Reference][] => {
    const named = auth[name];
    return named === undefined || typeof named === 'string' ? [] : [[name, named]];
  });
}

type Place = { path: Path; reference: Reference };

/** Every reference of a document to a secret, with where it stands. */
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

/** Every reference of a document with where it stands. */
export const listReferences = (governance: Governance): Place[] => [
  ...secretReferences(governance),
  ...keyReferences(governance),
];

/** Every reference of a document to the file of a public key, with where it stands. */
function keyReferences(governance: Governance): Place[] {
  return entriesOf(governance.document.agents).flatMap(([name, { public_key: key }]) =>
    key && 'file' in key ? [{ path: ['agents', name, 'public_key'], reference: { file: key.file } }] : [],
  );
}

/**
 * Reads every reference, or with `secrets: false` those to public keys only. Files are taken relative to `baseFolder`, the folder of the governance file; one line break at
 * the end of a value is not part of it. All problems come at once, and none repeats a value.
 */
export function resolveReferences(
  governance: Governance,
  baseFolder: string,
  environment: Readonly<Record<string, string | undefined>>,
  { secrets = true }: { secrets?: boolean } = {},
): { ok: true; values: Map<string, Secret> } | { ok: false; problems: Problem[] } {
  const values = new Map<string, Secret>();
  const findings: Finding[] = [];
  for (const { path, reference } of secrets ? listReferences(governance) : keyReferences(governance)) {
    const key = referenceKey(reference);
    if (values.has(key)) continue;
    const read = 'env' in reference ? readVariable(reference.env, environment) : readFile(baseFolder, reference.file);
    if ('problem' in read) findings.push({ path, message: read.problem });
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
    // A pipe would wait for its writer for ever.
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
