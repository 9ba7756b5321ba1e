/** Checks references between sections: names that must exist, scopes that a platform must have. */

import type { Manifest } from '../platforms/manifest.ts';
import { DEFAULT_POLICY } from '../policy/default-policy.ts';
import { parseOperation } from '../policy/operation.ts';
import { recipientEntryKind } from '../policy/recipients.ts';
import { canBeInRepositories } from '../policy/repos.ts';
import { didYouMean, similarNames } from '../runtime/did-you-mean.ts';
import { runToEnd } from '../runtime/pace.ts';
import type { Checked } from './check-document.ts';
import { checkHeaders } from './check-headers.ts';
import { checkOperations } from './check-operations.ts';
import { checkRuleNames } from './check-rule-names.ts';
import { entriesOf, termsOf } from './governance.ts';
import { listNames, type Path } from './problems.ts';
import type { GovernanceDocument } from './schema.ts';
import type { GrantTerms } from './terms.ts';

/** What will exist once the document is applied; undefined where only the store has the answer. */
export type ReferenceTargets = {
  platforms: ReadonlyMap<string, Manifest> | undefined;
  /** By name: the platform, and whether the connection is its default. */
  connections: ReadonlyMap<string, { platform: string; isDefault: boolean }> | undefined;
  policies: ReadonlySet<string> | undefined;
  owners: ReadonlySet<string> | undefined;
};

/** Returns the connections that a document describes; the only one of a platform is its default. */
export function documentConnections(
  document: GovernanceDocument,
): Map<string, { platform: string; isDefault: boolean }> | undefined {
  if (document.connections === undefined) return undefined;
  const entries = entriesOf(document.connections);
  const isOnly = (platform: string) => entries.filter(([, other]) => other.platform === platform).length === 1;
  return new Map(
    entries.map(([name, { platform, default: isDefault }]) => [
      name,
      { platform, isDefault: isDefault ?? isOnly(platform) },
    ]),
  );
}

export function checkReferences(document: GovernanceDocument, around: ReferenceTargets): Checked {
  return runToEnd(referencesOf(document, around));
}

/** Checks all references. A generator that yields between policies and between agents, of which there may be thousands. */
export function* referencesOf(document: GovernanceDocument, around: ReferenceTargets): Generator<void, Checked> {
  const found: Checked = { problems: [], warnings: [] };
  const unknown = (path: Path, what: string, name: string, known: Iterable<string>, at?: 'key') => {
    const names = [...known];
    found.problems.push({
      path,
      message: `there is no ${what} "${name}".${didYouMean(name, names)} There are: ${listNames(names)}.`,
      ...(at && { at }),
    });
  };
  for (const [name, { platform }] of entriesOf(document.connections)) {
    if (around.platforms && !around.platforms.has(platform))
      unknown(['connections', name, 'platform'], 'platform', platform, around.platforms.keys());
  }
  for (const [id, entry] of entriesOf(document.platforms)) {
    const manifest = around.platforms?.get(id);
    checkHeaders(entry, ['platforms', id], found);
    if (manifest) checkOperations(entry, manifest, ['platforms', id], found);
    yield;
  }
  for (const [name, policy] of entriesOf(document.policies)) {
    checkRuleNames(policy.rules, ['policies', name, 'rules'], around, found);
    yield;
  }
  checkRuleNames(document.guardrails ?? [], ['guardrails'], around, found);
  for (const [name, agent] of entriesOf(document.agents)) {
    const path = ['agents', name];
    const { policy, owner } = agent;
    if (policy !== undefined && policy !== DEFAULT_POLICY && around.policies && !around.policies.has(policy))
      unknown([...path, 'policy'], 'policy', policy, new Set([DEFAULT_POLICY, ...around.policies]));
    if (owner !== undefined && around.owners && !around.owners.has(owner))
      unknown([...path, 'owner'], 'owner', owner, around.owners);
    for (const [platform, grants] of entriesOf(agent.grants)) {
      const here = [...path, 'grants', platform];
      const manifest = around.platforms?.get(platform);
      if (around.platforms && !manifest) unknown(here, 'platform', platform, around.platforms.keys(), 'key');
      for (const { terms, path: below } of termsOf(grants)) {
        checkConnection(terms, platform, [...here, ...below], around, found);
        checkForms(terms, [...here, ...below], found);
        if (manifest) checkTerms(terms, platform, manifest, [...here, ...below], found);
      }
    }
    yield;
  }
  return found;
}

/** Refuses recipients that nobody can be, whatever the platform: owners limit grants by the same check. */
function checkForms({ recipients }: GrantTerms, path: Path, found: Checked): void {
  recipients?.forEach((entry, i) => {
    if (recipientEntryKind(entry) !== undefined) return;
    found.problems.push({
      path: [...path, 'recipients', i],
      message:
        'is no recipient; write "ann@acme.example", "@acme.example" for everybody there, or the id by which the platform knows somebody.',
    });
  });
}

function checkTerms(terms: GrantTerms, platform: string, manifest: Manifest, path: Path, found: Checked): void {
  const scopes = Object.keys(manifest.scopes);
  terms.scopes.forEach((scope, i) => {
    // The tools of an MCP server change; its manifest may not list all of them.
    if (manifest.kind === 'mcp' || Object.hasOwn(manifest.scopes, scope)) return;
    const near = similarNames(scope, scopes);
    const hint = scope.includes('*')
      ? ' A grant lists its scopes one by one; patterns are for policies.'
      : near.length > 0
        ? ` Did you mean ${listNames(near).replace(/ and (?=[^ ]*$)/, ' or ')}?`
        : '';
    found.problems.push({
      path: [...path, 'scopes', i],
      message: `the platform "${platform}" has no scope "${scope}".${hint} It has: ${listNames(scopes)}.`,
    });
  });
  checkLimits(terms, platform, manifest, path, found);
  if (terms.repos !== undefined && !hasRepositories(manifest))
    found.warnings.push({
      path: [...path, 'repos'],
      message: `refuses every call: no operation of "${platform}" names a repository in its path, as /repos/<owner>/<repo> does, so each is answered repo_not_allowed. To allow some operations, limit the scopes.`,
    });
}

const withRepositories = new WeakMap<Manifest, boolean>();

/** Whether some operation of a platform can be called where a grant limits repositories. Kept for a manifest, which thousands of grants may share. */
function hasRepositories(manifest: Manifest): boolean {
  const has =
    withRepositories.get(manifest) ??
    Object.values(manifest.scopes).some((operations) =>
      operations.some((text) => canBeInRepositories(parseOperation(text))),
    );
  withRepositories.set(manifest, has);
  return has;
}

/** Checks that the platform knows what is limited: a limit of something else refuses nothing, or everything. */
export function checkLimits(
  terms: Pick<GrantTerms, 'recipients' | 'refs' | 'ref_changes'>,
  platform: string,
  manifest: Pick<Manifest, 'recipients' | 'refs'>,
  path: Path,
  found: Checked,
): void {
  if (terms.recipients !== undefined) checkRecipients(terms.recipients, platform, manifest, path, found);
  const limit = terms.refs ? 'refs' : terms.ref_changes ? 'ref_changes' : undefined;
  if (limit !== undefined && manifest.refs === undefined)
    found.warnings.push({
      path: [...path, limit],
      message: `refuses all that is not a GET or git: the manifest of "${platform}" does not say (under \`refs\`) which branches and tags its operations write. To allow some operations, limit the scopes.`,
    });
}

function checkRecipients(
  entries: readonly string[],
  platform: string,
  { recipients = {} }: Pick<Manifest, 'recipients'>,
  path: Path,
  found: Checked,
): void {
  const pointers = Object.values(recipients).flat();
  if (pointers.length === 0) {
    found.warnings.push({
      path: [...path, 'recipients'],
      message: `limits nothing: the manifest of "${platform}" does not say (under \`recipients\`) where its calls name who receives.`,
    });
    return;
  }
  const formats = pointers.map((pointer) => (typeof pointer === 'object' ? pointer.format : undefined));
  // A text cannot be matched by an entry.
  const byId = formats.filter((format) => format !== 'text').map((format) => format === 'id' || format === 'ids');
  entries.forEach((entry, i) => {
    const kind = recipientEntryKind(entry);
    const isId = kind === 'id';
    if (kind === undefined || byId.includes(isId)) return;
    found.problems.push({
      path: [...path, 'recipients', i],
      message: isId
        ? `is no e-mail address, and "${platform}" knows nobody by an id; write "ann@acme.example", or "@acme.example" for everybody there.`
        : `is an e-mail address, but "${platform}" knows everybody by an id; write that.`,
    });
  });
}

function checkConnection(
  terms: GrantTerms,
  platform: string,
  path: Path,
  around: ReferenceTargets,
  found: Checked,
): void {
  const { connections } = around;
  if (connections === undefined) return;
  const ofPlatform = [...connections].filter(([, connection]) => connection.platform === platform);
  if (terms.connection === undefined) {
    if (ofPlatform.some(([, connection]) => connection.isDefault)) return;
    const why =
      ofPlatform.length === 0
        ? `"${platform}" has no connection yet`
        : `none of the connections of "${platform}" is the default (${listNames(ofPlatform.map(([name]) => name))})`;
    found.warnings.push({ path, message: `${why}, so calls with this grant are answered platform_not_connected.` });
    return;
  }
  const connection = connections.get(terms.connection);
  if (connection?.platform === platform) return;
  const names = ofPlatform.map(([name]) => name);
  found.problems.push({
    path: [...path, 'connection'],
    message: connection
      ? `the connection "${terms.connection}" is one to "${connection.platform}"; those to "${platform}" are: ${listNames(names)}.`
      : `there is no connection "${terms.connection}".${didYouMean(terms.connection, names)} Those to "${platform}" are: ${listNames(names)}.`,
  });
}
