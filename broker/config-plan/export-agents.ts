/** Exports agents and their grants as in a governance file, and describes what a file cannot express. */

import { beginOfSpan } from '../config-file/expiry.ts';
import type { Path } from '../config-file/problems.ts';
import { GovernanceDocument, type GovernanceDocumentInput } from '../config-file/schema.ts';
import type { Instant } from '../policy/facts.ts';
import { readConstraints, readLabels, readScopes } from '../store/stored-terms.ts';
import type { AgentTable, WorkloadTable } from '../store/tables/agents.ts';
import type { GrantTable } from '../store/tables/rules.ts';
import type { Present } from './present.ts';

type Agents = NonNullable<GovernanceDocumentInput['agents']>;
type Terms = Extract<NonNullable<Agents[string]['grants']>[string], { scopes: string[] }>;

const AgentNames = GovernanceDocument.shape.agents.unwrap().keyType;

const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/**
 * `remarks`: lines about agents that are left out of the file, or differ in it; `comments`: texts beside a value, by its path in the
 * document.
 */
export type ExportRemarks = { remarks: string[]; comments: { path: Path; text: string }[] };

/** `rest`: awaited between agents, to keep the process responsive. */
export async function exportAgents(
  present: Present,
  now: Instant,
  rest: () => Promise<void>,
): Promise<ExportRemarks & { agents: Agents }> {
  const agents: Agents = {};
  const notes: ExportRemarks = { remarks: [], comments: [] };
  const { remarks } = notes;
  const policies = new Map([...present.policies].map(([name, { id }]) => [id, name]));
  const shown = present.agents
    .filter((agent) => agent.status !== 'revoked' && agent.status !== 'deleted')
    .toSorted((a, b) => byText(a.name, b.name) || a.created_at - b.created_at);
  for (const agent of shown) {
    const said = `${JSON.stringify(agent.name)} (${agent.agent_id})`;
    if (!AgentNames.safeParse(agent.name).success) remarks.push(`${said} is not here: a file cannot have this name.`);
    else if (Object.hasOwn(agents, agent.name)) remarks.push(`${said} is not here: another agent has the same name.`);
    else
      agents[agent.name] = exportAgent(
        present,
        { agent, policy: agent.policy_id === null ? undefined : policies.get(agent.policy_id) },
        said,
        notes,
        now,
      );
    await rest();
  }
  return { agents, ...notes };
}

function exportAgent(
  present: Present,
  { agent, policy }: { agent: AgentTable; policy: string | undefined },
  said: string,
  notes: ExportRemarks,
  now: Instant,
): Agents[string] {
  const { remarks } = notes;
  const owner = present.owners.find(({ id }) => id === agent.owner_id)?.email;
  if (policy === undefined) remarks.push(`${said} is under no policy; applying this puts it under "default".`);
  const labels = readLabels(agent.labels, agent.id);
  const grants = exportGrants(present, agent, said, notes, now);
  const workload = present.workloads.get(agent.id);
  // A pending agent is exported without its key: at another broker nobody could ever collect that key.
  const waits = agent.status === 'pending';
  if (waits) remarks.push(`${said} has not collected its key yet, and is here without one.`);
  if (agent.agent_type === 'mcp_client')
    remarks.push(
      `${said} belongs to an MCP client, which an admin authorises; applied elsewhere it becomes an agent without a key.`,
    );
  return {
    ...(owner !== undefined && { owner }),
    ...(policy !== undefined && { policy }),
    // Also when empty: absent labels would leave those that the agent has where the file is applied.
    labels,
    ...(agent.status === 'suspended' && { suspended: true as const }),
    ...(agent.public_key_pem !== null && !waits && { public_key: { pem: agent.public_key_pem } }),
    ...(workload && { workload: exportWorkload(workload) }),
    ...(Object.keys(grants).length > 0 && { grants }),
  };
}

const exportWorkload = ({ issuer, subject, jwks_uri }: WorkloadTable) => ({
  issuer,
  subject,
  ...(jwks_uri !== null && { jwks_uri }),
});

function exportGrants(
  present: Present,
  agent: AgentTable,
  said: string,
  { remarks, comments }: ExportRemarks,
  now: Instant,
): Record<string, Terms | Terms[]> {
  const label = (id: string | null) => present.connections.find((connection) => connection.id === id)?.label;
  const grants = (present.grants.get(agent.id) ?? []).toSorted(
    (a, b) =>
      byText(a.platform_id, b.platform_id) || byText(label(a.connection_id) ?? '', label(b.connection_id) ?? ''),
  );
  const lists: Record<string, { terms: Terms; expiry: string | undefined }[]> = {};
  for (const grant of grants) {
    const manifest = present.platforms.get(grant.platform_id);
    const scopes = readScopes(grant.scopes, grant.id);
    const known = scopes.filter(
      (scope) => manifest && (manifest.kind === 'mcp' || Object.hasOwn(manifest.scopes, scope)),
    );
    const lost = scopes.filter((scope) => !known.includes(scope));
    if (lost.length > 0)
      remarks.push(
        `${said} is granted ${lost.join(', ')} on ${grant.platform_id}, which that platform does not have: left out.`,
      );
    if (known.length === 0) continue;
    const list = lists[grant.platform_id] ?? [];
    lists[grant.platform_id] = list;
    list.push({
      terms: exportTerms(grant, known, label(grant.connection_id)),
      expiry: commentOnExpiry(grant, now),
    });
  }
  for (const [platform, list] of Object.entries(lists))
    list.forEach(({ expiry: text }, i) => {
      const path = ['agents', agent.name, 'grants', platform, ...(list.length === 1 ? [] : [i]), 'expires'];
      if (text !== undefined) comments.push({ path, text });
    });
  return Object.fromEntries(
    Object.entries(lists).map(([id, list]) => {
      const [first, ...more] = list.map(({ terms }) => terms);
      return [id, first && more.length === 0 ? first : list.map(({ terms }) => terms)];
    }),
  );
}

function exportTerms(grant: GrantTable, scopes: string[], connection: string | undefined): Terms {
  const { recipients, repos, allow_repo_creation, refs, ref_changes } = readConstraints(grant.constraints, grant.id);
  return {
    scopes,
    ...(grant.expires_at !== null && { expires: momentOf(grant, grant.expires_at) }),
    ...(grant.require_approval === 1 && { require_approval: true }),
    ...(recipients && { recipients: [...recipients] }),
    ...(repos && { repos: [...repos] }),
    ...(allow_repo_creation && { allow_repo_creation }),
    ...(refs && { refs: [...refs] }),
    ...(ref_changes && { ref_changes: [...ref_changes] }),
    ...(connection !== undefined && { connection }),
  };
}

/** Returns the expiry as a moment, in the file's own text if that was a moment: a span would begin again at another broker. */
function momentOf({ expires_text: text }: GrantTable, end: Instant): string {
  return text === null || beginOfSpan(text, end) !== undefined ? new Date(end).toISOString() : text;
}

function commentOnExpiry({ expires_at: end, expires_text: text }: GrantTable, now: Instant): string | undefined {
  if (end === null) return undefined;
  const begin = text === null ? undefined : beginOfSpan(text, end);
  const span = begin === undefined ? [] : [`${text} since ${new Date(begin).toISOString()}`];
  const said = [...(end <= now ? ['ended'] : []), ...span];
  return said.length === 0 ? undefined : said.join('; ');
}
