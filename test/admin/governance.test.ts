import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { postgresNote, STORES, testOnOne } from '../world/stores.ts';
import { fresh, givenWorld } from '../world/world.ts';

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
  const onOne = testOnOne(store);
  const world = givenWorld(store);
  const organisation = fresh(() => world.organisation());

  const apply = (text?: string) => organisation.ask('POST', '/owner/governance/apply', body(text));
  const events = async () => (await organisation.ask('GET', '/owner/audit?kind=event')).body.rows;

  test('the author of a version of rules that came from a file is the row of that file, and no other row', async () => {
    await organisation.ask('POST', '/owner/policies', { name: 'other', rules: [{ effect: 'deny' }] });
    const text = `${FILE}guardrails: [{ name: freeze, effect: deny, methods: [DELETE] }]\n`.replace(
      'policies:\n',
      'policies:\n  other: { rules: [{ effect: deny }] }\n',
    );
    await expectStatus(200, apply(text));
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

  onOne('the author of a version is found, too, when planning the file took long', async () => {
    const { broker } = world.running;
    const { clock } = broker;
    let late = 0;
    // Each step of the apply takes two seconds.
    const slow = () => {
      late += 2_000;
      return clock() + late;
    };
    Object.assign(broker, { clock: slow });
    await expectStatus(
      200,
      apply().finally(() => Object.assign(broker, { clock })),
    );
    const { versions } = (await organisation.ask('GET', '/owner/policies/careful/versions')).body;
    expect(versions).toMatchObject([{ version: 1, made_by: { by: organisation.owner.id } }]);
  });

  test('of more than fifty changes, those of rules are always listed, and the hash of all is recorded', async () => {
    const platforms = Array.from(
      { length: 60 },
      (_, i) =>
        `  p${i}: { kind: rest, base_url: "https://p${i}.example", auth: { type: bearer }, scopes: { "p${i}:read": ["GET /**"] } }`,
    );
    const applied = await expectStatus(200, apply(FILE.replace('platforms:', ['platforms:', ...platforms].join('\n'))));
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

  test('a plan warns of held calls on a platform that it removes', async () => {
    await expectStatus(200, apply(FILE.replace('effect: allow', 'effect: require_approval')));
    const policy = (await organisation.ask('GET', '/owner/policies/careful')).body;
    const agent = await organisation.agent({ policy: policy.id, grants: { crm: { scopeList: ['crm:read'] } } });
    const call = { platform: 'crm', endpoint: '/a', method: 'GET', scope: 'crm:read' };
    const held = await expectStatus(202, agent.act(call));
    await expectStatus(200, organisation.ask('DELETE', `/owner/agents/${agent.id}/grants/crm`));
    const plan = async (text: string) => {
      const planned = await expectStatus(200, organisation.ask('POST', '/owner/governance/plan', { text, values: {} }));
      return planned.body.warnings;
    };
    const removal = 'platforms: {}\nconnections: {}\n';
    expect(JSON.stringify(await plan(removal))).toContain(
      'crm\\" is removed, and 1 held call on it can then be approved, but not made.',
    );
    await expectStatus(200, organisation.deny(held.body.approval_id));
    expect(await plan(removal)).toEqual([]);
  });

  test('is recorded with its changes; the receipt has neither secrets nor addresses', async () => {
    const planned = await organisation.ask('POST', '/owner/governance/plan', body());
    expect(await events()).toEqual([]);
    const applied = await expectStatus(200, apply());
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

  test('applies only the plan that was shown: a concurrent governance change is a conflict, without an event', async () => {
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

  onOne('a viewer can plan like an admin, but learns nothing about secrets, and cannot apply', async () => {
    const vera = await organisation.addOwner('viewer');
    const plan = async (asked: object, by = organisation.owner) => {
      const answer = await expectStatus(200, organisation.ask('POST', '/owner/governance/plan', asked, by));
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

  onOne('a sink that writes files is refused where the operator set no folder, as it is for owners', async () => {
    for (const verb of ['plan', 'apply']) {
      const text = 'audit_sinks: { local: { kind: file } }';
      const refused = await organisation.ask('POST', `/owner/governance/${verb}`, { text });
      expectEnvelope(refused, 400, 'invalid_governance');
      expect(refused.body.problems).toEqual([
        expect.stringContaining(
          'audit_sinks.local.kind: this broker writes no files: its operator has to set AUDIT_FOLDER',
        ),
      ]);
    }
  });

  test('applying the same file again changes and records nothing; nor does a refused file', async () => {
    await apply();
    expect((await apply()).body.changes).toEqual([]);
    expectEnvelope(await apply('platforms: [x]'), 400, 'invalid_governance');
    expectEnvelope(await apply('agents: { triage: { policy: none } }'), 400, 'invalid_governance');
    expect(await events()).toHaveLength(1);
  });

  test('of concurrent applies one succeeds, and is recorded', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => apply()));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(answers.filter((answer) => answer.body.changes.length > 0)).toHaveLength(1);
    expect(await events()).toHaveLength(1);
  });

  test('an apply that cannot be recorded changes nothing', async () => {
    await whileAuditRowsAreRefused(world, async () => {
      expectEnvelope(await apply(), 503, 'audit_unavailable');
    });
    expect((await organisation.ask('GET', '/owner/platforms')).body.platforms).toEqual([]);
    expect((await apply()).body.changes).not.toEqual([]);
  });

  test('an agent that was created manually becomes managed by the file, even if nothing of it changes', async () => {
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

  test('only admins see the settings of channels and audit sinks, in files, plans and applies', async () => {
    const receivers = (word: string) => `${FILE}channels:
  ops: { kind: ntfy, server: "https://ntfy.example", topic: CANARY-${word} }
  paged: { kind: ntfy, topic: CANARY-other, quiet: { from: "22:00", to: "07:00", zone: Europe/Berlin } }
audit_sinks:
  siem: { kind: webhook, url: "https://siem.example/CANARY-${word}", secret: { env: SIEM_KEY } }
guardrails: [{ name: freeze, effect: deny, methods: [DELETE] }]
`;
    for (const word of ['first', 'second']) {
      const given = body(receivers(word));
      const values = { ...given.values, 'env:SIEM_KEY': `whsec_${'A'.repeat(43)}=` };
      await expectStatus(200, organisation.ask('POST', '/owner/governance/apply', { ...given, values }));
    }
    const paths = async () => {
      const { applies } = (await organisation.ask('GET', '/owner/governance/applies')).body;
      const before = applies.map(({ id }: { id: string }) => `/owner/governance/applies/${id}/before`);
      return ['/owner/governance', '/owner/governance/applies', ...before];
    };
    const plan = { ...body(receivers('guessed')), without_secrets: true };
    const seen = async (by = organisation.owner) => {
      const answers = [await organisation.ask('POST', '/owner/governance/plan', plan, by)];
      for (const path of await paths()) answers.push(await organisation.ask('GET', path, undefined, by));
      for (const answer of answers) expect(answer.status, answer.text).toBe(200);
      return answers;
    };
    for (const answer of (await seen()).slice(0, 4)) expect(answer.text).toMatch(/CANARY-(first|second)/);
    for (const role of ['viewer', 'approver'] as const) {
      const [planned, file, applies, ...before] = await seen(await organisation.addOwner(role));
      for (const answer of [planned!, file!, applies!, ...before])
        expect(answer.text).not.toMatch(/CANARY|ntfy\.example/);
      // They still see that something differs, and everything else.
      expect(planned!.body.changes).toContainEqual({
        action: 'update',
        kind: 'channel',
        name: 'ops',
        details: ['settings: changed; only admins see them'],
      });
      expect(planned!.body.changes).toContainEqual(expect.objectContaining({ kind: 'audit_sink', name: 'siem' }));
      const { text } = file!.body;
      expect(text).toMatch(/^# channels and audit_sinks are left out.*\npolicies:$/m);
      for (const section of ['connections:', 'guardrails:', 'name: freeze']) expect(text).toContain(section);
      // An apply of that file changes nothing.
      expect(
        (await organisation.ask('POST', '/owner/governance/plan', { text, keep_secrets: true })).body.changes,
      ).toEqual([]);
    }
  });

  describe('undoing an apply', () => {
    const present = async () => (await organisation.ask('GET', '/owner/governance')).body.text as string;
    const applies = async (by = organisation.owner) =>
      (await organisation.ask('GET', '/owner/governance/applies', undefined, by)).body.applies;
    const fileBefore = async (id: string) =>
      (await organisation.ask('GET', `/owner/governance/applies/${id}/before`)).body.text as string;
    const planBack = async (text: string) =>
      (await organisation.ask('POST', '/owner/governance/plan', { text, keep_secrets: true })).body;
    const goBack = (text: string, more: object = {}) =>
      organisation.ask('POST', '/owner/governance/apply', { text, keep_secrets: true, ...more });

    test('restores the state before an apply, including later manual changes to it; secrets are kept', async () => {
      await apply();
      const wanted = await present();
      const second = FILE.replace('["crm:*"]', '["crm:read"]').replace('role: viewer', 'role: approver');
      expect((await apply(second)).status).toBe(200);
      await organisation.ask('POST', '/owner/guardrails', { guardrails: [{ name: 'freeze', effect: 'deny' }] });
      const [newest, oldest, ...others] = await applies();
      expect(others).toEqual([]);
      expect(newest).toMatchObject({
        applied_at: expect.any(String),
        made_by: { by: organisation.owner.id, how: 'api', audit_id: newest.id },
        detail: null,
        change_count: 2,
        changes: [
          { action: 'update', kind: 'owner', details: ['role: viewer → approver'] },
          { action: 'update', kind: 'policy', name: 'careful' },
        ],
        has_file: true,
      });
      expect((await events()).find(({ id }: { id: string }) => id === newest.id).reason).toBe('governance_applied');
      const text = await fileBefore(newest.id);
      expect(text).toBe(wanted);
      expect(text).not.toContain(SECRET);
      const planned = await planBack(text);
      expect(planned.needs_values).toEqual([]);
      expect(planned.changes.map(({ kind }: { kind: string }) => kind)).toEqual(['owner', 'policy', 'guardrails']);
      await expectStatus(200, goBack(text, { governance_version: planned.governance_version }));
      expect(await present()).toBe(wanted);
      const [connection] = (await organisation.ask('GET', '/owner/connections')).body.connections;
      expect(connection).toMatchObject({ has_secret: true, secret_from: 'env:CRM_TOKEN' });
      // Undoing is an apply itself, and so can be undone.
      expect((await applies()).map(({ id }: { id: string }) => id).slice(1)).toEqual([newest.id, oldest.id]);
      expect(await fileBefore((await applies())[0].id)).toContain('freeze');
    });

    onOne('removes labels that an agent did not have before', async () => {
      await apply(`${FILE}agents: { triage: {} }\n`);
      const wanted = await present();
      expect((await apply(`${FILE}agents: { triage: { labels: [prod] } }\n`)).status).toBe(200);
      const text = await fileBefore((await applies())[0].id);
      expect((await planBack(text)).changes).toEqual([
        { action: 'update', kind: 'agent', name: 'triage', details: ['labels: prod → none'] },
      ]);
      expect((await goBack(text)).status).toBe(200);
      expect(await present()).toBe(wanted);
      expect((await organisation.ask('GET', '/owner/agent-labels')).body.labels).toEqual([]);
    });

    onOne('a secret that is not stored any more, or came from elsewhere, has to be given again', async () => {
      await apply();
      const wanted = await present();
      expect((await apply('connections: {}')).status).toBe(200);
      const [{ id }] = await applies();
      const text = await fileBefore(id);
      expect((await planBack(text)).needs_values).toEqual(['env:CRM_TOKEN']);
      const refused = await goBack(text);
      expectEnvelope(refused, 400, 'invalid_governance');
      expect(refused.text).toContain('the value of env:CRM_TOKEN was not given with the file');
      expect((await goBack(text, { values: { 'env:CRM_TOKEN': SECRET } })).status).toBe(200);
      expect(await present()).toBe(wanted);
      const elsewhere = wanted.replace('CRM_TOKEN', 'OTHER_TOKEN');
      expect((await planBack(elsewhere)).needs_values).toEqual(['env:OTHER_TOKEN']);
      // Without the option to keep them, as before.
      expectEnvelope(await organisation.ask('POST', '/owner/governance/apply', { text }), 400, 'invalid_governance');
    });

    test('the last 20 applies are kept; viewers can read them, other organisations cannot', async () => {
      for (let at = 0; at < 22; at++) await apply(`auto_suspend: { refusals: ${at + 10}, within_seconds: 60 }\n`);
      const viewer = await organisation.addOwner('viewer');
      const kept = await applies(viewer);
      expect(kept).toHaveLength(20);
      expect(kept[0].changes[0].details[0]).toContain('31');
      expect(kept[19].changes[0].details[0]).toContain('12');
      const stranger = await world.organisation();
      const path = `/owner/governance/applies/${kept[0].id}/before`;
      expect((await organisation.ask('GET', path, undefined, viewer)).status).toBe(200);
      expectEnvelope(await stranger.ask('GET', path), 404, 'not_found');
      expect((await stranger.ask('GET', '/owner/governance/applies')).body).toEqual({ applies: [] });
    });
  });
});
