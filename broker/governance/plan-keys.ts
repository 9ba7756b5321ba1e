/** How an agent comes by its key: from the file, or by a token with which it brings its own. */
import { type AgentPublicKey, parsePublicKey } from '../crypto/public-key.ts';
import type { Instant } from '../decision/facts.ts';
import { mintBootstrapToken } from '../identity/bootstrap-token.ts';
import { bindKey } from '../store/agents.ts';
import { endOneTimeTokens } from '../store/governance.ts';
import type { AgentTable } from '../store/schema.ts';
import type { Db } from '../store/store.ts';
import { addProblem, addStep, difference, type Made, type Planning } from './planning.ts';
import type { AgentEntry } from './schema.ts';

/** The key that the file gives, undefined when it gives none, `problem` when it is none (noted). */
export function keyOf(planning: Planning, name: string, entry: AgentEntry): AgentPublicKey | undefined | 'problem' {
  const { public_key: reference } = entry;
  if (reference === undefined) return undefined;
  const pem = 'pem' in reference ? reference.pem : planning.resolved.get(`file:${reference.file}`)?.reveal();
  const path = ['agents', name, 'public_key'];
  const parsed = pem === undefined ? undefined : parsePublicKey(pem);
  if (parsed?.ok) return parsed;
  addProblem(planning, path, parsed?.error ?? 'the content of this file was not given with the governance file.');
  return 'problem';
}

export function planKey(planning: Planning, known: AgentTable, key: AgentPublicKey): void {
  const { organisationId, now } = planning;
  const details = difference('fingerprint', known.key_fingerprint, key.fingerprint);
  const action = known.key_fingerprint === null ? 'create' : 'update';
  addStep(planning, { action, kind: 'key', name: known.name, details }, async (db) => {
    await bindKey(db, { organisationId, id: known.id }, key, now);
    // The file has given the key: a token that was printed for bringing one is good for nothing now.
    await endOneTimeTokens(db, { organisationId, kind: 'bootstrap', subject: known.id }, now);
  });
}

/** Makes the token of an agent that waits for its key. */
export async function mint(db: Db, agent: AgentTable, made: Made, now: Instant): Promise<void> {
  const { token, expiresAt } = await mintBootstrapToken(db, agent, now);
  made.tokens.push({ agent: agent.name, agentId: agent.agent_id, token, expiresAt });
}
