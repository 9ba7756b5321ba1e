/** Checks that need only the document: rules, manifests, keys, and duplicate names. */

import { parsePublicKey } from '../crypto/public-key.ts';
import { parsePlatformEntry } from '../platforms/builtin.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { compileCondition } from '../policy/conditions/condition.ts';
import { conditionDoubts } from '../policy/conditions/doubts.ts';
import { presenceTest } from '../policy/conditions/variables.ts';
import { ruleProblems } from '../policy/rules/compile.ts';
import { entriesOf, type Governance, ruleSources, termsOf } from './governance.ts';
import type { JsonSchema } from './json-schema.ts';
import { type Finding, listNames, type Path } from './problems.ts';
import type { GovernanceDocument } from './schema.ts';
import { shapeFindings } from './shape-findings.ts';

export type Checked = { problems: Finding[]; warnings: Finding[] };

/** Returns the complete manifests of the document's platforms, and the problems of the others. */
export function readManifests(
  document: GovernanceDocument,
  schemaOf: () => JsonSchema,
): { manifests: Map<string, Manifest>; problems: Finding[] } {
  const manifests = new Map<string, Manifest>();
  const problems: Finding[] = [];
  for (const [id, { suspended, ...entry }] of entriesOf(document.platforms)) {
    const parsed = parsePlatformEntry(entry);
    if (parsed.success) manifests.set(id, parsed.data);
    else {
      const below = schemaOf().properties?.platforms?.additionalProperties as JsonSchema;
      const found = shapeFindings(parsed.error.issues, entry, below);
      problems.push(...found.map((finding) => ({ ...finding, path: ['platforms', id, ...finding.path] })));
    }
  }
  return { manifests, problems };
}

/** The file may be read where it is written, or have been sent to the broker. */
const PRIVATE_KEY =
  'This is a private key, which never leaves the agent. Write the public key here (openssl pkey -in agent.key -pubout). If this file was sent or stored anywhere, make a new key pair first.';

/** Runs all checks that need only one section. */
export function checkDocument(document: GovernanceDocument): Checked & Pick<Governance, 'keys'> {
  const keys = new Map<string, { pem: string; fingerprint: string }>();
  const found: Checked & Pick<Governance, 'keys'> = { problems: [], warnings: [], keys };
  for (const [name, policy] of entriesOf(document.policies))
    checkRules(policy.rules, 'policy', ['policies', name, 'rules'], found);
  checkRules(document.guardrails ?? [], 'guardrail', ['guardrails'], found);
  checkOwners(document, found);
  checkDefaults(document, found);
  for (const [name, agent] of entriesOf(document.agents)) {
    const path = ['agents', name];
    if (agent.public_key && 'pem' in agent.public_key) {
      const key = parsePublicKey(agent.public_key.pem);
      if (key.ok) keys.set(agent.public_key.pem, { pem: key.pem, fingerprint: key.fingerprint });
      else
        found.problems.push({
          path: [...path, 'public_key', 'pem'],
          message: key.code === 'private_key' ? PRIVATE_KEY : key.error,
        });
    }
    for (const [platform, grants] of entriesOf(agent.grants)) checkGrants(grants, [...path, 'grants', platform], found);
  }
  return found;
}

/** Checks that rules compile, and warns of members they read that may be missing. */
export function checkRules(rules: readonly object[], kind: 'policy' | 'guardrail', path: Path, found: Checked): void {
  const sources = ruleSources(rules);
  for (const problem of ruleProblems(sources, kind))
    found.problems.push({ path: [...path, ...problem.path], message: `${problem.message}.` });
  const names = new Map<string, number>();
  sources.forEach((rule, i) => {
    if (rule.name !== undefined && kind === 'policy' && names.has(rule.name))
      found.problems.push({
        path: [...path, i, 'name'],
        message: `there are two rules "${rule.name}" in this policy.`,
      });
    if (rule.name !== undefined && kind === 'policy' && /^rule \d+$/.test(rule.name))
      found.problems.push({
        path: [...path, i, 'name'],
        message: `"${rule.name}" is what a rule without a name is called by its place; choose another name.`,
      });
    if (rule.name !== undefined) names.set(rule.name, i);
    warnOfCondition(
      rule.when,
      rule.effect === 'allow' ? 'the rule does not allow' : 'the rule applies',
      [...path, i],
      found,
    );
    warnOfCondition(rule.after?.when, 'the rule looks back at the call', [...path, i, 'after'], found);
  });
}

/** Warns of a condition that fails where a member is missing, or always, and of one that reads what no call has. */
function warnOfCondition(when: string | undefined, then: string, path: Path, found: Checked): void {
  const condition = when === undefined ? undefined : compileCondition(when);
  if (!condition?.ok) return;
  const { source, readsWithoutHas: read } = condition.condition;
  for (const message of conditionDoubts(source, then)) found.warnings.push({ path: [...path, 'when'], message });
  const [first] = read;
  if (first === undefined) return;
  found.warnings.push({
    path: [...path, 'when'],
    message: `reads ${listNames(read).replaceAll('\\"', '"')} without has(). Where it is missing the condition fails, which counts against the agent: ${then}. Write ${presenceTest(first)} && … to say what you mean.`,
  });
}

function checkOwners(document: GovernanceDocument, { problems }: Checked): void {
  const seen = new Set<string>();
  document.owners?.forEach(({ email }, i) => {
    if (seen.has(email)) problems.push({ path: ['owners', i, 'email'], message: `"${email}" is listed twice.` });
    seen.add(email);
  });
}

function checkDefaults(document: GovernanceDocument, { problems }: Checked): void {
  const defaults = new Map<string, string>();
  for (const [name, connection] of entriesOf(document.connections)) {
    if (connection.default !== true) continue;
    const other = defaults.get(connection.platform);
    if (other !== undefined)
      problems.push({
        path: ['connections', name, 'default'],
        message: `"${other}" is the default connection of "${connection.platform}" already; a platform has one.`,
      });
    defaults.set(connection.platform, name);
  }
}

type Grants = NonNullable<NonNullable<GovernanceDocument['agents']>[string]['grants']>[string];

function checkGrants(grants: Grants, path: Path, { problems }: Checked): void {
  const connections = new Set<string | undefined>();
  for (const { terms, path: below } of termsOf(grants)) {
    const here = [...path, ...below];
    if (connections.has(terms.connection))
      problems.push({
        path: terms.connection === undefined ? here : [...here, 'connection'],
        message:
          terms.connection === undefined
            ? 'there are two grants without a connection on this platform; name a connection in one, or write one grant.'
            : `there are two grants with the connection "${terms.connection}"; write one.`,
      });
    connections.add(terms.connection);
  }
}
