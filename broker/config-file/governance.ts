/** A parsed and checked governance document, with what is needed to point into its source. */

import type { Manifest } from '../platforms/manifest.ts';
import type { RuleSource } from '../policy/facts.ts';
import type { Finding, Problem, Source } from './problems.ts';
import type { GovernanceDocument } from './schema.ts';
import type { GrantTerms } from './terms.ts';

export type Governance = {
  readonly document: GovernanceDocument;
  /** The platforms of the document with built-in fields filled in; empty when it has no such section. */
  readonly manifests: ReadonlyMap<string, Manifest>;
  readonly source: Source;
  /** `program`: created by the broker itself; its references to secrets are not stored, because they could not be resolved later. */
  readonly origin: 'file' | 'program';
  readonly warnings: readonly Problem[];
  /** The parsed public keys of the document, by their literal text. */
  readonly keys: ReadonlyMap<string, { pem: string; fingerprint: string }>;
  /** Finds the lines of findings, for a file that another thread has read; without it `placeFindings` is used. */
  readonly place?: (findings: readonly Finding[]) => Promise<Problem[]>;
};

/** Returns the entries of a section by name: `Object.entries` with the type that zod's records have. */
export function entriesOf<Value>(section: Readonly<Record<string, Value>> | undefined): [string, Value][] {
  return Object.entries(section ?? {});
}

/** Returns rules as they are stored and compiled: without the members that zod leaves undefined. */
export function ruleSources(rules: readonly object[]): RuleSource[] {
  return JSON.parse(JSON.stringify(rules)) as RuleSource[];
}

/** Returns the grants of an agent on one platform, each with its path. */
export function termsOf(grants: GrantTerms | GrantTerms[]): { terms: GrantTerms; path: readonly number[] }[] {
  return Array.isArray(grants) ? grants.map((terms, i) => ({ terms, path: [i] })) : [{ terms: grants, path: [] }];
}
