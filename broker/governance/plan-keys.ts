/** How an agent comes by its key: from the file, or by a token with which it brings its own. */
import { type AgentPublicKey, parsePublicKey } from '../crypto/public-key.ts';
import type { Instant } from '../decision/facts.ts';
import { mintBootstrapToken } from '../identity/bootstrap-token.ts';
import { bindKey } from '../store/agent-keys.ts';
import { endOneTimeTokens } from '../store/governance.ts';
import { destroyUncollectedKey } from '../store/registrations.ts';
import type { AgentTable } from '../store/schema.ts';
import type { Db } from '../store/store.ts';
import { addProblem, addStep, difference, type Made, type Planning } from './planning.ts';
import type { AgentEntry } from './schema.ts';

/** The key that the file gives, undefined when it gives none, `problem` when it is none (noted). */
export function keyOf(
  planning: Planning,
  name: string,
  entry: AgentEntry,
  known: AgentTable | undefined,
): AgentPublicKey | undefined | 'problem' {
  const { public_key: reference } = entry;
  if (reference === undefined) return undefined;
  const pem = 'pem' in reference ? reference.pem : planning.resolved.get(`file:${reference.file}`)?.reveal();
  const path = ['agents', name, 'public_key'];
  if (known && (known.agent_type === 'mcp_client' || known.agent_type === 'child')) {
    addProblem(
      planning,
      path,
      'an agent of this name is there already, and the broker answers for it: it takes no key.',
    );
    return 'problem';
  }
  const parsed = pem === undefined ? undefined : parsePublicKey(pem);
  const problem = parsed?.ok
    ? whyNotThis(planning, parsed, known)
    : (parsed?.error ?? 'the content of this file was not given with the governance file.');
  if (parsed?.ok && problem === undefined) return parsed;
  addProblem(planning, path, problem!);
  return 'problem';
}

/** As where agents bring their keys themselves: every agent has its own, and one that was replaced does not come back. */
function whyNotThis(
  { present, futureAgents }: Planning,
  { fingerprint }: AgentPublicKey,
  known: AgentTable | undefined,
): string | undefined {
  if (known?.key_fingerprint === fingerprint) return undefined;
  const other =
    futureAgents.find((agent) => agent.fingerprint === fingerprint) ??
    present.agents.find((agent) => agent.key_fingerprint === fingerprint && agent.id !== known?.id);
  if (other)
    return `this is the key of the agent "${other.name}"${isDeleted(other) ? ', which was deleted' : ''}. Every agent has its own: make a new key pair.`;
  if (present.formerKeys.has(fingerprint))
    return 'this key was replaced by another one, and does not come back. Make a new key pair.';
  return undefined;
}

const isDeleted = (agent: object): boolean => 'status' in agent && agent.status === 'deleted';

export function planKey(planning: Planning, known: AgentTable, key: AgentPublicKey): void {
  const { organisationId, now } = planning;
  const details = difference('fingerprint', known.key_fingerprint, key.fingerprint);
  const action = known.key_fingerprint === null ? 'create' : 'update';
  addStep(planning, { action, kind: 'key', name: known.name, details }, async (db) => {
    const place = { organisationId, id: known.id };
    if (!(await bindKey(db, place, key, now)))
      throw new Error(`The agent ${known.name} changed its status meanwhile; apply again.`);
    await destroyUncollectedKey(db, place);
    // The file has given the key: a token that was printed for bringing one is good for nothing now.
    await endOneTimeTokens(db, { organisationId, kind: 'bootstrap', subject: known.id }, now);
  });
}

/** Makes the token of an agent that waits for its key. */
export async function mint(db: Db, agent: AgentTable, made: Made, now: Instant): Promise<void> {
  const { token, expiresAt } = await mintBootstrapToken(db, agent, now);
  made.tokens.push({ agent: agent.name, agentId: agent.agent_id, token, expiresAt });
}
