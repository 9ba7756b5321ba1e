/** Makes the store what a governance file says, all of it or nothing. */
import type { Broker } from '../broker.ts';
import type { Governance } from '../config-file/governance.ts';
import { pacer } from '../config-file/pace.ts';
import type { Problem } from '../config-file/problems.ts';
import type { Resolved } from '../config-file/secrets.ts';
import type { Instant } from '../policy/facts.ts';
import { putAgents, putGrants } from '../store/agents.ts';
import { adoptAgent, lockOrganisation } from '../store/governance.ts';
import type { Db } from '../store/store.ts';
import { finish, planOn, UnknownOrganisation } from './plan.ts';
import type { BootstrapToken, Made, Plan } from './planning.ts';

export type ApplyResult =
  | {
      ok: true;
      plan: Plan;
      bootstrapTokens: BootstrapToken[];
      /** Held calls and access requests that ended with their agents: to be announced. */
      ended: Made['ended'];
      /** How many agents that were made by hand came under the file, which is no change of what is governed. */
      adopted: number;
    }
  | { ok: false; problems: Problem[] };

export type ApplyOptions = {
  /**
   * The broker is starting. An agent whose name or key can no longer be used as the file says (it was bound to another key,
   * or deleted) is then a warning, and stays as the store has it, so that it does not keep all others from working.
   */
  atStart?: boolean;
};

/**
 * Plans and makes the changes in a transaction, which no other apply to the organisation overlaps; what is made is what is
 * answered. Applying the same file again changes nothing. What is refused has changed nothing.
 *
 * @returns the changes that were made, and the tokens of new agents without a key: nobody can show them again
 * @throws UnknownOrganisation; whatever the store throws, and then the transaction has to end
 */
export async function applyOn(
  db: Db,
  vault: Broker['vault'],
  organisationId: string,
  governance: Governance,
  resolved: Resolved,
  now: Instant,
  options: ApplyOptions = {},
): Promise<ApplyResult> {
  const organisation = await lockOrganisation(db, organisationId);
  if (!organisation) throw new UnknownOrganisation(organisationId);
  const planning = await planOn(db, vault, organisation, governance, resolved, now, options);
  const result = await finish(planning);
  if (!result.ok) return result;
  const made: Made = { tokens: [], ended: [], agents: [], grants: [] };
  const rest = pacer();
  for (const step of planning.steps) {
    await step.make(db, made);
    await rest();
  }
  for (const rows of groups(made.agents)) {
    await putAgents(db, rows);
    await rest();
  }
  for (const rows of groups(made.grants)) {
    await putGrants(db, rows);
    await rest();
  }
  for (const id of planning.adopted) await adoptAgent(db, organisationId, id);
  const { tokens: bootstrapTokens, ended } = made;
  return { ok: true, plan: result.plan, bootstrapTokens, ended, adopted: planning.adopted.length };
}

/** So many rows a statement are soon made, and cost little more than all of them in one. */
const ROWS_A_STATEMENT = 100;

function* groups<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let at = 0; at < rows.length; at += ROWS_A_STATEMENT) yield rows.slice(at, at + ROWS_A_STATEMENT);
}
