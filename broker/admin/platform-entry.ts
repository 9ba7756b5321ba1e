/** What an owner writes of a platform: an entry as under `platforms` of a governance file, and the values that its `auth` references. */
import { schemaProblem } from '../../json/schema-problem.ts';
import { platformReferences } from '../config-file/secrets.ts';
import type { Secret } from '../crypto/secret.ts';
import { parsePlatformEntry } from '../platforms/builtin.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { JsonObject } from '../policy/facts.ts';
import { readStored, StoredObject } from '../store/stored-json.ts';
import { PLATFORM_SECRETS, type PlatformSecretName } from '../token-source/platform-secret.ts';
import { rulesRefused } from './given-rules.ts';
import { whyNotPlatformSecret } from './platform-secrets.ts';
import type { ReadPlatform } from './platforms.ts';
import { ChangeRefused } from './refused.ts';

export type GivenSecrets = { [name in PlatformSecretName]?: Secret | undefined };

/** What is kept of an entry beside the manifest that is made from it: null of a platform of one's own. */
export const keptEntry = (entry: Readonly<Record<string, unknown>>): string | null =>
  entry.use === undefined ? null : JSON.stringify(entry);

/** What was kept of it. @throws Error that names the platform */
export const storedEntry = ({ platform_id, entry }: Pick<ReadPlatform, 'platform_id' | 'entry'>): JsonObject | null =>
  entry === null ? null : readStored(StoredObject, entry, `entry of platform ${platform_id}`);

/** Throws ChangeRefused with all problems, each with its place in the entry. */
export function readPlatformEntry(entry: Readonly<Record<string, unknown>>): Manifest {
  const parsed = parsePlatformEntry(entry);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    (issue) => `entry${issue.path.map((part) => `.${String(part)}`).join('')}: ${schemaProblem(issue)}.`,
  );
  throw rulesRefused('invalid_request', problems);
}

/** Each that is referenced and not `stored`, or given again; no other. Throws ChangeRefused. */
export function secretsFor(
  manifest: Manifest,
  given: GivenSecrets,
  stored: readonly string[],
): (readonly [name: PlatformSecretName, secret: Secret])[] {
  const needed = platformReferences(manifest).map(([name]) => name);
  const refused = (name: string, why: string) => new ChangeRefused('invalid_request', `secrets.${name}: ${why}.`);
  for (const name of PLATFORM_SECRETS)
    if (given[name] && !needed.includes(name)) throw refused(name, 'is not referenced in the auth of the entry');
  return needed.flatMap((name) => {
    const secret = given[name];
    if (!secret && stored.includes(name)) return [];
    if (!secret) throw refused(name, 'is missing, and the auth of the entry references it');
    const problem = whyNotPlatformSecret(name, secret);
    if (problem) throw refused(name, problem);
    return [[name, secret] as const];
  });
}
