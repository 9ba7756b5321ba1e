/** Workloads in a governance file: agents that need neither a key nor a bootstrap token. */
import { describe, expect, test } from 'vitest';
import { assignWorkload, newWorkload } from '../../broker/admin/agents/workloads.ts';
import { exportGovernance } from '../../broker/config-plan/export.ts';
import { findGovernanceVersion } from '../../broker/store/governance.ts';
import { setWorkloadsUsed } from '../../broker/store/workloads.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { fresh, shared } from '../world/world.ts';
import { Governed, newPublicKey, openBroker, problemsOf, titles } from './governance-world.ts';

const ISSUER = 'https://kubernetes.default.svc';
const SUBJECT = 'system:serviceaccount:agents:sweeper';
const WORKLOAD = `{ issuer: "${ISSUER}", subject: "${SUBJECT}" }`;
const FILE = `agents:\n  sweeper: { workload: ${WORKLOAD} }\n`;

describe.each(STORES)(`workloads in governance files on %s${postgresNote}`, (store) => {
  const broker = shared(() => openBroker(store));
  const governed = fresh(() => Governed.make(broker));
  const workloadOf = async (name: string) => {
    const { workloads, agents } = await governed.present();
    return workloads.get(agents.find((one) => one.name === name)!.id);
  };
  const changesOf = async (text: string) => (await governed.apply(text)).plan.changes;
  const setByHand = async (name: string) => {
    const agent = await governed.agent(name);
    const workload = newWorkload(agent, { issuer: ISSUER, subject: SUBJECT, jwks_uri: null }, 'owner', governed.now);
    await broker.store.db.transaction().execute((db) => assignWorkload(db, agent, workload, governed.now));
  };

  test('an agent with a workload is active immediately, without a key or a bootstrap token', async () => {
    const applied = await governed.apply(FILE);
    expect(applied.bootstrapTokens).toEqual([]);
    expect(applied.plan.changes).toEqual([
      {
        action: 'create',
        kind: 'agent',
        name: 'sweeper',
        details: ['owner: ann@acme.example', 'policy: default', 'public key: none; its workload has tokens'],
      },
      {
        action: 'create',
        kind: 'workload',
        name: 'sweeper',
        details: [`issuer: none → ${ISSUER}`, `subject: none → ${SUBJECT}`],
      },
    ]);
    const agent = await governed.agent('sweeper');
    expect(agent).toMatchObject({ status: 'active', agent_type: null, public_key_pem: null });
    expect(await workloadOf('sweeper')).toMatchObject({ issuer: ISSUER, subject: SUBJECT, origin: 'governance' });
    expect(applied.trusting).toEqual([{ agent: 'sweeper', agentId: agent.agent_id }]);
    expect(await changesOf(FILE)).toEqual([]);
    const exported = await exportGovernance(broker, governed.id, governed.now);
    expect(exported).toContain(`subject: ${SUBJECT}`);
    expect(await changesOf(exported)).toEqual([]);
  });

  test('a changed workload gets another id, and an agent can have a key as well', async () => {
    await governed.apply(FILE);
    const before = await workloadOf('sweeper');
    const keys = 'https://keys.example/jwks';
    const changed = FILE.replace('agents:sweeper" }', `agents:other", jwks_uri: "${keys}" }`);
    expect(await changesOf(changed)).toEqual([
      {
        action: 'update',
        kind: 'workload',
        name: 'sweeper',
        details: [
          'subject: system:serviceaccount:agents:sweeper → system:serviceaccount:agents:other',
          `jwks_uri: none → ${keys}`,
        ],
      },
    ]);
    const after = await workloadOf('sweeper');
    expect(after).toMatchObject({ subject: 'system:serviceaccount:agents:other', jwks_uri: keys });
    expect(after!.id).not.toBe(before!.id);
    expect(await exportGovernance(broker, governed.id, governed.now)).toContain(`jwks_uri: ${keys}`);
    const pem = JSON.stringify(newPublicKey());
    const both = `agents:\n  sweeper: { public_key: { pem: ${pem} }, workload: ${WORKLOAD} }\n`;
    expect(titles(await changesOf(both))).toEqual(['update workload sweeper', 'create key sweeper']);
    expect(await governed.agent('sweeper')).toMatchObject({ agent_type: 'key', key_fingerprint: expect.any(String) });
  });

  test('a workload from a file is removed when it is left out, and the plan says what is missing then', async () => {
    await governed.apply(FILE);
    const { plan } = await governed.apply('agents:\n  sweeper: {}\n');
    expect(plan.changes).toEqual([
      {
        action: 'delete',
        kind: 'workload',
        name: 'sweeper',
        details: [`issuer: ${ISSUER} → none`, `subject: ${SUBJECT} → none`],
      },
    ]);
    expect(plan.warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining('then has neither a key nor a workload'),
    ]);
    expect(await workloadOf('sweeper')).toBeUndefined();
    await governed.apply(`agents:\n  night shift: { workload: ${WORKLOAD} }\n`);
    const { warnings } = await governed.plan('agents:\n  night shift: {}\n');
    expect(warnings[0]?.message).toMatch(/: agent-broker agent bootstrap "night shift"\.$/);
  });

  test('a workload that an owner set stays until a file names another one', async () => {
    await governed.apply('agents:\n  sweeper: {}\n');
    await setByHand('sweeper');
    expect(await changesOf('agents:\n  sweeper: {}\n')).toEqual([]);
    expect(await workloadOf('sweeper')).toMatchObject({ origin: 'owner' });
    await governed.apply(FILE.replace('agents:sweeper" }', 'agents:other" }'));
    expect(await workloadOf('sweeper')).toMatchObject({ origin: 'governance' });
    expect((await changesOf('agents:\n  sweeper: {}\n')).map(({ action }) => action)).toEqual(['delete']);
  });

  test('an agent that waits for its key becomes active, and its bootstrap token is used up', async () => {
    const [token] = (await governed.apply('agents:\n  sweeper: {}\n')).bootstrapTokens;
    expect(token).toBeDefined();
    const { plan } = await governed.apply(FILE);
    expect(titles(plan.changes)).toEqual(['create workload sweeper']);
    expect(plan.changes[0]!.details.at(-1)).toBe('status: pending_bind → active');
    expect((await governed.agent('sweeper')).status).toBe('active');
    const open = await broker.store.db
      .selectFrom('one_time_tokens')
      .select('used_at')
      .where('organisation_id', '=', governed.id)
      .where('kind', '=', 'bootstrap')
      .execute();
    expect(open).toEqual([{ used_at: governed.now }]);
  });

  test('an agent that was left out comes back with its workload, and a suspended one stays suspended', async () => {
    await governed.apply(FILE);
    await governed.apply('agents: {}');
    expect((await governed.agent('sweeper')).status).toBe('revoked');
    expect((await governed.apply(FILE)).bootstrapTokens).toEqual([]);
    expect((await governed.agent('sweeper')).status).toBe('active');
    await governed.apply(FILE.replace('{ workload', '{ suspended: true, workload'));
    expect((await governed.agent('sweeper')).status).toBe('suspended');
    const second = `agents:\n  second: { suspended: true, workload: ${WORKLOAD} }\n`;
    await governed.apply(second);
    expect((await governed.agent('second')).status).toBe('suspended');
    expect(await workloadOf('second')).toBeDefined();
  });

  test('a change of a workload changes the governance version, its use does not', async () => {
    await governed.apply(FILE);
    const { db } = broker.store;
    const version = () => findGovernanceVersion(db, governed.id);
    const first = await version();
    await setWorkloadsUsed(db, [(await workloadOf('sweeper'))!.id], governed.now);
    expect(await version()).toBe(first);
    await setByHand('sweeper');
    const second = await version();
    expect(second).not.toBe(first);
    await db.deleteFrom('workloads').where('organisation_id', '=', governed.id).execute();
    expect(await version()).not.toBe(second);
  });

  test('hundreds of agents with workloads are created in batches', async () => {
    const names = Array.from({ length: 300 }, (_, i) => `agent-${i}`);
    const text = `agents:\n${names.map((name) => `  ${name}: { workload: { issuer: "${ISSUER}", subject: "system:serviceaccount:agents:${name}" } }\n`).join('')}`;
    const { trusting } = await governed.apply(text);
    expect(trusting).toHaveLength(300);
    expect((await governed.present()).workloads.size).toBe(300);
    expect(await changesOf(text)).toEqual([]);
  });

  test('the agent of an MCP client cannot have one', async () => {
    await governed.apply('agents:\n  claude: {}\n');
    const { id } = await governed.agent('claude');
    await broker.store.db.updateTable('agents').set({ agent_type: 'mcp_client' }).where('id', '=', id).execute();
    expect(await governed.refusal(FILE.replace('sweeper:', 'claude:'))).toEqual([
      expect.stringContaining('it cannot have a workload. Use another name here, or revoke it.'),
    ]);
  });
});

test('an invalid workload is a problem at its place in the file', () => {
  const of = (workload: string) => problemsOf(`agents:\n  sweeper: { workload: ${workload} }\n`);
  expect(of('{ issuer: "https://c.example" }')).toEqual([expect.stringContaining('subject')]);
  expect(of('{ issuer: "http://c.example", subject: a }')).toEqual([
    expect.stringContaining('https://'),
    expect.stringContaining('must be https'),
  ]);
  expect(of('{ issuer: "https://c.example", subject: "a*" }')).toEqual([
    expect.stringContaining('is compared literally'),
  ]);
});
