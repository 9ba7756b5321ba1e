/** A platform as an owner describes it: an entry as under `platforms` of a governance file, and the secrets that its `auth` references. */
import { schemaProblem } from '../../../json/schema-problem.ts';
import { platformReferences } from '../../config-file/secrets.ts';
import type { Secret } from '../../crypto/secret.ts';
import { parsePlatformEntry } from '../../platforms/builtin.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import type { JsonObject } from '../../policy/facts.ts';
import { readStored, StoredObject } from '../../store/stored-json.ts';
import { PLATFORM_SECRETS, type PlatformSecretName } from '../../token-source/platform-secret.ts';
import { rulesRefused } from '../policies/check-rules.ts';
import { ChangeRefused } from '../refused.ts';
import { whyNotPlatformSecret } from './platform-secrets.ts';
import type { ReadPlatform } from './platforms.ts';

export type GivenSecrets = { [name in PlatformSecretName]?: Secret | undefined };

/** Returns the entry text that is stored beside the manifest built from it; null for a platform that is not built in. */
export const keptEntry = (entry: Readonly<Record<string, unknown>>): string | null =>
  entry.use === undefined ? null : JSON.stringify(entry);

/** Parses the stored entry. @throws Error that names the platform */
export const storedEntry = ({ platform_id, entry }: Pick<ReadPlatform, 'platform_id' | 'entry'>): JsonObject | null =>
  entry === null ? null : readStored(StoredObject, entry, `entry of platform ${platform_id}`);

/** Parses an entry. Throws ChangeRefused with all problems, each with its path in the entry. */
export function readPlatformEntry(entry: Readonly<Record<string, unknown>>): Manifest {
  const parsed = parsePlatformEntry(entry);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    (issue) => `entry${issue.path.map((part) => `.${String(part)}`).join('')}: ${schemaProblem(issue)}.`,
  );
  throw rulesRefused('invalid_request', problems);
}

/**
 * Returns the secrets to store: those that are referenced and not `stored` yet, or given again. Throws ChangeRefused for missing and unknown ones.
 */
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
