/** Plans how an agent gets its key: from the file, or by a token with which it binds its own. */

import { bindAgentKey } from '../admin/agents/bind.ts';
import { mintBootstrapToken } from '../auth/bootstrap-token.ts';
import { difference } from '../config-file/differences.ts';
import type { AgentEntry } from '../config-file/schema.ts';
import { type AgentPublicKey, parsePublicKey } from '../crypto/public-key.ts';
import type { Db } from '../store/store.ts';
import type { AgentTable } from '../store/tables/agents.ts';
import { addConflict, addProblem, addStep, ChangedMeanwhile, type Made, type Planning } from './planning.ts';

/** A parsed key: its PEM in normal form, and its fingerprint. */
export type AgentKey = Pick<AgentPublicKey, 'pem' | 'fingerprint'>;

/**
 * Returns the key that the file gives; undefined when it gives none, or, as the broker starts, an unusable one; `stays` when
 * the agent has to stay as the store has it, because of a problem (already added) or, as the broker starts, a conflict.
 */
export function keyOf(
  planning: Planning,
  name: string,
  entry: AgentEntry,
  known: AgentTable | undefined,
): AgentKey | undefined | 'stays' {
  const { public_key: reference } = entry;
  if (reference === undefined) return undefined;
  const pem = 'pem' in reference ? reference.pem : planning.resolved.get(`file:${reference.file}`)?.reveal();
  const path = ['agents', name, 'public_key'];
  if (known && (known.agent_type === 'mcp_client' || known.agent_type === 'child')) {
    const why = 'an agent of this name exists already, and the broker issues its tokens: it cannot have a key.';
    const refused = 'Use another name here, or revoke it.';
    addConflict(planning, path, { why, refused, left: `It was left as it is. ${refused}` });
    return 'stays';
  }
  const parsed = pem === undefined ? undefined : readKey(planning, pem, known);
  if (!parsed?.ok) {
    const message = parsed?.error ?? 'the content of this file was not given with the governance file.';
    addProblem(planning, path, message);
    return 'stays';
  }
  const { fingerprint } = parsed;
  const twin = planning.givenKeys.get(fingerprint);
  if (twin !== undefined) {
    const message = `this is the key of the agent "${twin}". Every agent has its own: make a new key pair.`;
    addProblem(planning, path, message);
    return 'stays';
  }
  const why = known?.key_fingerprint === fingerprint ? undefined : whyNotThis(planning, fingerprint);
  if (why === undefined) {
    planning.givenKeys.set(fingerprint, name);
    return parsed;
  }
  const left = known
    ? 'The agent was left with the key that it has: write that one here, or leave `public_key` out.'
    : 'The agent was not made: give it a new key pair, or take it out of the file.';
  addConflict(planning, path, { why, refused: 'Make a new key pair.', left });
  return known && planning.atStart ? undefined : 'stays';
}

/** Parses a key, unless it is known already: parsing takes a quarter of a millisecond, and a file may have thousands. */
function readKey({ governance }: Planning, text: string, known: AgentTable | undefined) {
  if (known?.public_key_pem === text && known.key_fingerprint !== null)
    return { ok: true as const, pem: text, fingerprint: known.key_fingerprint };
  const read = governance.keys.get(text);
  return read ? { ok: true as const, ...read } : parsePublicKey(text);
}

/**
 * Returns why the key cannot be used. The rules are those for agents that bind their keys themselves: a key belongs to one agent only, and a replaced
 * key is not accepted again.
 */
function whyNotThis({ present }: Planning, fingerprint: string): string | undefined {
  // Always another agent: the caller has excluded the agent's own key.
  const other = present.agentsByKey.get(fingerprint);
  if (other) {
    const deleted = other.status === 'deleted' ? ', which was deleted' : '';
    return `this is the key of the agent "${other.name}"${deleted}. Every agent has its own, and none can be renamed: a name is for people only, keep it.`;
  }
  return present.formerKeys.has(fingerprint)
    ? 'this key was replaced by another one and cannot be used again.'
    : undefined;
}

export function planKey(planning: Planning, known: AgentTable, key: AgentKey): void {
  const { now } = planning;
  const details = difference('fingerprint', known.key_fingerprint, key.fingerprint);
  const action = known.key_fingerprint === null ? 'create' : 'update';
  addStep(planning, { action, kind: 'key', name: known.name, details }, async (db, made) => {
    const ended = await bindAgentKey(db, known, key, now);
    if (!ended) throw new ChangedMeanwhile(`The agent ${known.name}`);
    made.ended.push(...ended.requests);
  });
}

/** Creates the token of an agent that waits for its key. */
export async function mint(db: Db, agent: AgentTable, made: Made, { now, madeBy }: Planning): Promise<void> {
  const { token, expiresAt } = await mintBootstrapToken(db, agent, now, { madeBy });
  made.tokens.push({ agent: agent.name, agentId: agent.agent_id, token, expiresAt });
}
