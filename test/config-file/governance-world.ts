/** A broker for governance tests: a real store, a real vault, and one organisation; without a network. */
import { expect } from 'vitest';
import { createOrganisation } from '../../broker/admin/organisations/organisations.ts';
import type { Broker } from '../../broker/broker.ts';
import type { Governance } from '../../broker/config-file/governance.ts';
import { parseGovernance } from '../../broker/config-file/parse.ts';
import { formatProblem } from '../../broker/config-file/problems.ts';
import { type ApplyOptions, type ApplyResult, applyFile } from '../../broker/config-plan/apply.ts';
import { planGovernance } from '../../broker/config-plan/plan.ts';
import type { Change, Plan } from '../../broker/config-plan/planning.ts';
import { loadPresent, type Present } from '../../broker/config-plan/present.ts';
import { generateMasterKey } from '../../broker/crypto/master-key.ts';
import { Secret } from '../../broker/crypto/secret.ts';
import type { Instant } from '../../broker/policy/facts.ts';
import { findOrganisation } from '../../broker/store/organisations.ts';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import { openSqlite } from '../../broker/store/sqlite/sqlite.ts';
import type { Db, Store } from '../../broker/store/store.ts';
import { makeVault } from '../../broker/vault.ts';
import { newRsaPair } from '../world/rsa.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { copyMigratedStore, newFolder, newMigratedDatabase, type StoreKind } from '../world/stores.ts';

export const ANN = 'ann@acme.example';
export const DAY = 86_400_000;

export type GovernedBroker = Pick<Broker, 'store' | 'vault'>;

/** Opens one store for a test file; tests are separated by their organisations. */
export async function openBroker(kind: StoreKind): Promise<GovernedBroker> {
  const store: Store =
    kind === 'sqlite'
      ? openSqlite(copyMigratedStore(newFolder()))
      : openPostgres(await newMigratedDatabase(), { connections: 4, onError: () => {} });
  afterFile(() => store.close());
  return { store, vault: makeVault({ current: generateMasterKey().key, previous: [] }) };
}

/** Applies a file in a transaction of its own; the broker also records it (`broker/config-plan/apply-recorded.ts`). */
export function applyGovernance(
  { store, vault }: GovernedBroker,
  organisationId: string,
  governance: Governance,
  resolved: ReadonlyMap<string, Secret>,
  now: Instant,
  options: ApplyOptions = {},
): Promise<ApplyResult> {
  const applying = { store, vault, organisationId, governance, resolved, clock: () => now, options };
  return applyFile(applying, (make) => store.db.transaction().execute(make));
}

export function makeOrganisation({ store }: GovernedBroker, name: string, ownerEmail: string, now: Instant) {
  return store.db.transaction().execute((db) => createOrganisation(db, { name, ownerEmail }, now));
}

/** Returns the database, with `change` made once, after this table was first read through it. `by`: the function of Kysely that reads. */
export function changedAfterReading<Of extends Db>(
  db: Of,
  table: string,
  change: () => Promise<unknown>,
  by: 'execute' | 'executeTakeFirst' = 'executeTakeFirst',
): Of {
  let isMade = false;
  const after = <Target extends object>(target: Target): Target =>
    new Proxy(target, {
      get: (of, name) => {
        const member: unknown = Reflect.get(of, name, of);
        if (typeof member !== 'function') return member;
        return (...given: unknown[]) => {
          const answer: unknown = member.apply(of, given);
          if (name !== by) return after(answer as object);
          return (answer as Promise<unknown>).then(async (read) => {
            if (!isMade) {
              isMade = true;
              await change();
            }
            return read;
          });
        };
      },
    });
  return new Proxy(db, {
    get: (of, name) => {
      const member: unknown = Reflect.get(of, name, of);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]) => {
        const answer: unknown = member.apply(of, given);
        return name === 'selectFrom' && given[0] === table ? after(answer as object) : answer;
      };
    },
  });
}

/** An organisation with the owner ann, and short helpers for its governance. */
export class Governed {
  readonly broker: GovernedBroker;
  readonly id: string;
  now: Instant = Date.UTC(2026, 5, 1, 12);
  values = new Map<string, Secret>();

  constructor(broker: GovernedBroker, id: string) {
    this.broker = broker;
    this.id = id;
  }

  static async make(broker: GovernedBroker): Promise<Governed> {
    const name = `org ${Math.random().toString(36).slice(2)}`;
    const now = Date.UTC(2026, 5, 1);
    const { organisation } = await makeOrganisation(broker, name, ANN, now);
    return new Governed(broker, organisation.id);
  }

  secret(key: string, value: string): this {
    this.values.set(key, new Secret(value));
    return this;
  }

  /** Returns the plan of a file that can be applied. */
  async plan(text: string): Promise<Plan> {
    const result = await planGovernance(this.broker, this.id, read(text), this.values, this.now);
    if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
    return result.plan;
  }

  /** Returns the problems of a file that can be parsed but not applied, as people see them. */
  async refusal(text: string): Promise<string[]> {
    const result = await applyGovernance(this.broker, this.id, read(text), this.values, this.now);
    if (result.ok) throw new Error('The file was applied.');
    return result.problems.map(formatProblem);
  }

  async apply(text: string): Promise<Extract<ApplyResult, { ok: true }>> {
    const planned = await this.plan(text);
    const result = await applyGovernance(this.broker, this.id, read(text), this.values, this.now);
    if (!result.ok) throw new Error(result.problems.map(formatProblem).join('\n'));
    expect(result.plan).toEqual(planned);
    return result;
  }

  async present(): Promise<Present> {
    const organisation = await findOrganisation(this.broker.store.db, this.id);
    return await loadPresent(this.broker.store.db, organisation!, this.now);
  }

  async agent(name: string) {
    const found = (await this.present()).agents.filter((agent) => agent.name === name);
    expect(found).toHaveLength(1);
    return found[0]!;
  }
}

export function read(text: string): Governance {
  const parsed = parseGovernance(text, 'governance.yaml');
  if (!parsed.ok) throw new Error(parsed.problems.map(formatProblem).join('\n'));
  return parsed.governance;
}

/** Returns the problems of a file that cannot be parsed, as people see them. */
export function problemsOf(text: string): string[] {
  const parsed = parseGovernance(text, 'governance.yaml');
  return parsed.ok ? [] : parsed.problems.map(formatProblem);
}

export function warningsOf(text: string): string[] {
  const parsed = parseGovernance(text, 'governance.yaml');
  if (!parsed.ok) throw new Error(parsed.problems.map(formatProblem).join('\n'));
  return parsed.warnings.map(formatProblem);
}

/** Formats `create agent triage`, one line a change. */
export function titles(changes: readonly Change[]): string[] {
  return changes.map(({ action, kind, name }) => `${action} ${kind} ${name}`);
}

export function newPublicKey(): string {
  return newRsaPair().publicKey.export({ format: 'pem', type: 'spki' }) as string;
}

/** Quotes a PEM as a JSON string, which is valid YAML. */
export const quote = (text: string) => JSON.stringify(text);

export const CRM = `platforms:
  crm:
    kind: rest
    base_url: https://crm.example/api
    auth: { type: bearer }
    scopes:
      crm:contacts.read: ["GET /contacts", "GET /contacts/*"]
      crm:contacts.write: ["POST /contacts", "PATCH /contacts/*"]
    recipients: { "POST /contacts": ["/to"] }
`;
