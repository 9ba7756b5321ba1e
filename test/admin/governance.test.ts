import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { fresh, givenWorld } from '../world/given.ts';
import { postgresNote, STORES } from '../world/stores.ts';

const FILE = `
platforms:
  crm: { kind: rest, base_url: "https://crm.example/api", auth: { type: bearer }, scopes: { "crm:read": ["GET /**"] } }
connections:
  crm-main: { platform: crm, secret: { env: CRM_TOKEN } }
policies:
  careful: { rules: [{ effect: allow, scopes: ["crm:*"] }] }
owners:
  - { email: secret.person@acme.example, role: viewer }
`;
const SECRET = 'CANARY-governance-0123456789';
const body = (text = FILE) => ({ text, values: { 'env:CRM_TOKEN': SECRET } });

describe.each(STORES)(`applying a governance file by the owner API on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.organisation());

  const apply = (text?: string) => organisation.ask('POST', '/owner/governance/apply', body(text));
  const events = async () => (await organisation.ask('GET', '/owner/audit?kind=event')).body.rows;

  test('a version of rules that came by a file names the row of the file, and nobody else’s', async () => {
    await organisation.ask('POST', '/owner/policies', { name: 'other', rules: [{ effect: 'deny' }] });
    const text = `${FILE}guardrails: [{ name: freeze, effect: deny, methods: [DELETE] }]\n`.replace(
      'policies:\n',
      'policies:\n  other: { rules: [{ effect: deny }] }\n',
    );
    const applied = await apply(text);
    expect(applied.status, applied.text).toBe(200);
    const rows: { id: string; reason: string }[] = await events();
    const rowOf = (reason: string) => rows.find((row) => row.reason === reason)?.id;
    const makers = async (path: string) =>
      (await organisation.ask('GET', `${path}/versions`)).body.versions.map(
        ({ version, made_by: made }: { version: number; made_by: { audit_id: string; by: string } }) => [
          version,
          made.audit_id,
          made.by,
        ],
      );
    const byFile = [[1, rowOf('governance_applied'), organisation.owner.id]];
    expect(await makers('/owner/policies/careful')).toEqual(byFile);
    expect(await makers('/owner/guardrails')).toEqual(byFile);
    expect(await makers('/owner/policies/other')).toEqual([[1, rowOf('policy_created'), organisation.owner.id]]);
  });

  test('of more than fifty changes, those of rules are never left out, and the hash of all is on record', async () => {
    const platforms = Array.from(
      { length: 60 },
      (_, i) =>
        `  p${i}: { kind: rest, base_url: "https://p${i}.example", auth: { type: bearer }, scopes: { "p${i}:read": ["GET /**"] } }`,
    );
    const applied = await apply(FILE.replace('platforms:', ['platforms:', ...platforms].join('\n')));
    expect(applied.status, applied.text).toBe(200);
    const [row] = await events();
    const { receipt } = (await organisation.ask('GET', `/v1/audit/${row.id}/receipt`)).body;
    const { payload } = await verifyReceipt(world, receipt);
    const ORDER = ['policy', 'owner', 'platform', 'connection'];
    const lines = applied.body.changes
      .toSorted((a: { kind: string }, b: { kind: string }) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind))
      .map(
        ({ action, kind, name }: Record<string, string>) => `${action} ${kind}${kind === 'owner' ? '' : ` ${name}`}`,
      );
    expect(lines.slice(0, 3)).toEqual(['create policy careful', 'create policy default', 'create owner']);
    expect(payload.change).toEqual({
      by: organisation.owner.id,
      how: 'api',
      changes: lines.slice(0, 50),
      more: 15,
      all_sha256: createHash('sha256')
        .update(`${lines.join('\n')}\n`)
        .digest('hex'),
    });
  });

  test('is on record with what it changed, and neither secrets nor addresses in the receipt', async () => {
    const planned = await organisation.ask('POST', '/owner/governance/plan', body());
    expect(await events()).toEqual([]);
    const applied = await apply();
    expect(applied.status, applied.text).toBe(200);
    expect(applied.body.changes).toEqual(planned.body.changes);
    const [row, ...others] = await events();
    expect([row.reason, others]).toEqual(['governance_applied', []]);
    const { receipt } = (await organisation.ask('GET', `/v1/audit/${row.id}/receipt`)).body;
    const { payload } = await verifyReceipt(world, receipt);
    expect(payload.change).toEqual({
      by: organisation.owner.id,
      how: 'api',
      changes: [
        'create owner',
        'create platform crm',
        'create policy careful',
        'create policy default',
        'create connection crm-main',
      ],
    });
    expect(JSON.stringify([payload, row])).not.toMatch(/CANARY|secret\.person/);
  });

  test('applies nothing but what was shown: another version of what is governed is a conflict, and no event', async () => {
    const plan = async () => (await organisation.ask('POST', '/owner/governance/plan', body())).body.governance_version;
    const apply = (governance_version: string) =>
      organisation.ask('POST', '/owner/governance/apply', { ...body(), governance_version });
    const first = await plan();
    expect(await plan()).toBe(first);
    await organisation.ask('POST', '/owner/policies', { name: 'other', rules: [{ effect: 'deny' }] });
    expectEnvelope(await apply(first), 409, 'conflict');
    expect((await organisation.ask('GET', '/owner/platforms')).body.platforms).toEqual([]);
    const answers = await Promise.all([await plan(), await plan()].map(apply));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    const reasons = (await events()).map(({ reason }: { reason: string }) => reason);
    expect(reasons).toEqual(['governance_applied', 'policy_created']);
  });

  test('a viewer plans as an admin does, but learns nothing of secrets, and applies nothing', async () => {
    const vera = await organisation.addOwner('viewer');
    const plan = async (asked: object, by = organisation.owner) => {
      const answer = await organisation.ask('POST', '/owner/governance/plan', asked, by);
      expect(answer.status, answer.text).toBe(200);
      return answer.body;
    };
    const text = FILE;
    const admins = await plan(body());
    const viewers = await plan({ text }, vera);
    expect(viewers.changes).toEqual(admins.changes);
    expect(viewers.warnings).toEqual([
      ...admins.warnings,
      expect.stringContaining('its secret was not compared with what is stored'),
    ]);
    expectEnvelope(await organisation.ask('POST', '/owner/governance/apply', body(), vera), 403, 'forbidden');
    await apply();
    const stays = 'policies: { careful: { rules: [{ effect: allow, scopes: ["crm:*"], methods: [GET] }] } }';
    const changed = FILE.replace(/policies:\n.*\n/, `${stays}\n`);
    const guess = { 'env:CRM_TOKEN': 'CANARY-another-guess' };
    const [bare, right, wrong] = [
      await plan({ text: changed }, vera),
      await plan({ text: changed, values: { 'env:CRM_TOKEN': SECRET } }, vera),
      await plan({ text: changed, values: guess }, vera),
    ];
    expect(bare.changes).toMatchObject([{ kind: 'policy', name: 'careful', action: 'update' }]);
    expect([right, wrong]).toEqual([bare, bare]);
    expect(await plan({ text: changed, values: guess, without_secrets: true })).toEqual(bare);
    expect((await plan({ text: changed, values: guess })).changes).toHaveLength(2);
  });

  test('again changes nothing and leaves nothing on record; nor does a file that is refused', async () => {
    await apply();
    expect((await apply()).body.changes).toEqual([]);
    expectEnvelope(await apply('platforms: [x]'), 400, 'invalid_governance');
    expectEnvelope(await apply('agents: { triage: { policy: none } }'), 400, 'invalid_governance');
    expect(await events()).toHaveLength(1);
  });

  test('of many at once one does, and is on record', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => apply()));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(answers.filter((answer) => answer.body.changes.length > 0)).toHaveLength(1);
    expect(await events()).toHaveLength(1);
  });

  test('that cannot be recorded changes nothing', async () => {
    const mend = await refuseAuditRows(world);
    try {
      expectEnvelope(await apply(), 503, 'audit_unavailable');
    } finally {
      await mend();
    }
    expect((await organisation.ask('GET', '/owner/platforms')).body.platforms).toEqual([]);
    expect((await apply()).body.changes).not.toEqual([]);
  });

  test('an agent that was made by hand comes under the file, though nothing of it changes', async () => {
    await apply();
    const policy = (await organisation.ask('GET', '/owner/policies/default')).body.id;
    for (const name of ['by hand', 'other']) await organisation.agent({ name, policy, grants: {} });
    const { text } = (await organisation.ask('GET', '/owner/governance')).body;
    expect((await apply(text)).body.changes).toEqual([]);
    expect(await events()).toHaveLength(2);
    const without = text.replace(/^ {2}by hand:(?:\n {4}.*)*\n/m, '');
    expect(without).not.toContain('by hand');
    const { changes } = (await apply(without)).body;
    expect(changes).toContainEqual(expect.objectContaining({ kind: 'agent', name: 'by hand' }));
  });
});
