/** Caches compiled policies, guardrails and manifests by version: a version never changes, so entries need no expiry. */
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { SealError } from '../crypto/seal.ts';
import { compileManifest, Manifest } from '../platforms/manifest.ts';
import { sentencesIn, withFree } from '../platforms/presets.ts';
import type { Guardrails, Policy, StandingApproval } from '../policy/facts.ts';
import type { PlatformRules } from '../policy/platform-rules.ts';
import { compileGuardrails, compilePolicy } from '../policy/rules/compile.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { compileSentences, type Sentences } from '../sentences/sentences.ts';
import { findGuardrailRules, findManifest, findPolicyRules } from '../store/governed-versions.ts';
import { findStandingTerms } from '../store/standing-approvals.ts';
import { readStoredRules } from '../store/stored-json.ts';
import { openTerms } from './standing-terms.ts';

/** `sentences`: compiled on first use, because decisions do not need them. */
export type CompiledPlatform = { manifest: Manifest; rules: PlatformRules; sentences: () => Sentences };

export type Compiled = {
  policy(organisationId: string, id: string, name: string, version: number): Promise<Policy>;
  guardrails(organisationId: string, version: number): Promise<Guardrails>;
  platform(organisationId: string, platformId: string, version: number): Promise<CompiledPlatform>;
  /** Returns the standing approvals that can be read; those that cannot be opened are omitted, and approve nothing. */
  standing(organisationId: string, ids: readonly string[]): Promise<StandingApproval[]>;
};

/** Far more entries than one organisation needs; with many organisations, the least recently used ones are evicted. */
const CACHE_SIZE = 5_000;

const CACHED_ENTRIES = 1_000;

function compileEntry(platformId: string, text: string): CompiledPlatform {
  const manifest = Manifest.parse(JSON.parse(text));
  let sentences: Sentences | undefined;
  return {
    manifest,
    rules: compileManifest(platformId, withFree(manifest)),
    sentences: () => (sentences ??= compileSentences(sentencesIn(manifest))),
  };
}

/** Caches promises, except those that were rejected. */
function promiseCache<Value>() {
  const kept = recentlyUsed<Promise<Value>>(CACHE_SIZE);
  return (key: string, make: () => Promise<Value>): Promise<Value> => {
    const found = kept.get(key);
    if (found) return found;
    const made = make();
    kept.set(key, made);
    made.catch(() => kept.delete(key));
    return made;
  };
}

async function readStanding(
  broker: Pick<Broker, 'log' | 'store' | 'vault'>,
  organisationId: string,
  id: string,
): Promise<StandingApproval | undefined> {
  const row = await findStandingTerms(broker.store.db, organisationId, id);
  if (!row) return undefined;
  try {
    const terms = openTerms(broker, row);
    return terms && { id, expiresAt: row.expires_at, terms };
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    broker.log.error({ err: error, security: true, standing: id }, 'the terms of a standing approval cannot be opened');
    return undefined;
  }
}

/** Throws when a version that a row refers to is missing: then nothing may be decided. */
export function compiledGovernance(broker: Pick<Broker, 'log' | 'store' | 'vault'>): Compiled {
  const { db } = broker.store;
  const policies = promiseCache<Policy>();
  const guardrails = promiseCache<Guardrails>();
  const platforms = promiseCache<CompiledPlatform>();
  const standing = promiseCache<StandingApproval | undefined>();
  /** Cached by content: many organisations have the same entry of a built-in platform, and its rules are large. */
  const entries = recentlyUsed<CompiledPlatform>(CACHED_ENTRIES);
  const present = <T>(found: T | undefined, what: string): T => {
    if (found === undefined) throw new Error(`${what} is not in the store`);
    return found;
  };
  return {
    policy: (organisationId, id, name, version) =>
      policies(`${organisationId}/${id}/${version}/${name}`, async () => {
        const rules = present(
          await findPolicyRules(db, organisationId, id, version),
          `policy ${id} version ${version}`,
        );
        return compilePolicy({ id, name, version, rules: readStoredRules(rules, `rules of policy ${id}`) });
      }),
    guardrails: (organisationId, version) =>
      guardrails(`${organisationId}/${version}`, async () => {
        if (version === 0) return compileGuardrails({ version, rules: [] });
        const rules = present(await findGuardrailRules(db, organisationId, version), `guardrails version ${version}`);
        return compileGuardrails({ version, rules: readStoredRules(rules, `guardrails version ${version}`) });
      }),
    platform: (organisationId, platformId, version) =>
      platforms(`${organisationId}/${platformId}/${version}`, async () => {
        const text = present(
          await findManifest(db, organisationId, platformId, version),
          `platform ${platformId} version ${version}`,
        );
        const key = `${platformId} ${sha256Hex(text)}`;
        const found = entries.get(key);
        if (found) return found;
        const made = compileEntry(platformId, text);
        entries.set(key, made);
        return made;
      }),
    standing: async (organisationId, ids) => {
      const read = ids.map((id) => standing(`${organisationId}/${id}`, () => readStanding(broker, organisationId, id)));
      return (await Promise.all(read)).filter((one) => one !== undefined);
    },
  };
}
