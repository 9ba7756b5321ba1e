/** A governance document that was read and understood, with the way back to its lines. */

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
  /** `program`: made by the broker itself, whose references to secrets nobody else could follow. */
  readonly origin: 'file' | 'program';
  readonly warnings: readonly Problem[];
  /** The keys that stand in it, by their text as it stands there. */
  readonly keys: ReadonlyMap<string, { pem: string; fingerprint: string }>;
  /** Gives findings their lines; without it `placeFindings` does. Of a file that another thread has read. */
  readonly place?: (findings: readonly Finding[]) => Promise<Problem[]>;
};

/** The entries of a section by name; `Object.entries` with the type that zod's records have. */
export function entriesOf<Value>(section: Readonly<Record<string, Value>> | undefined): [string, Value][] {
  return Object.entries(section ?? {});
}

/** Rules as they are stored and compiled: without the members that zod leaves undefined. */
export function ruleSources(rules: readonly object[]): RuleSource[] {
  return JSON.parse(JSON.stringify(rules)) as RuleSource[];
}

/** The grants of an agent on one platform, each with where it stands. */
export function termsOf(grants: GrantTerms | GrantTerms[]): { terms: GrantTerms; path: readonly number[] }[] {
  return Array.isArray(grants) ? grants.map((terms, i) => ({ terms, path: [i] })) : [{ terms: grants, path: [] }];
}
