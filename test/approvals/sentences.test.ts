/** The sentence that describes a held call: built once, when the call is held, and shown from the store. */
import { describe, expect, test } from 'vitest';
import { generateMasterKey } from '../../broker/crypto/master-key.ts';
import { BUILTIN_PLATFORMS } from '../../broker/platforms/builtin.ts';
import { putPlatform } from '../../broker/store/governed-versions.ts';
import { rewrapAll } from '../../broker/vault.ts';
import { expectStatus } from '../world/agent.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

const TITLES = { 'POST /items': 'create **{/kind}** *{/title}*' };
const WRITE = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' };

describe.each(ONE_STORE)(`sentences of held calls on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ manifest: { sentences: TITLES } }));
  const agent = shared(() => organisation.agent());

  const hold = async (data: Record<string, unknown>) => {
    const answer = await expectStatus(202, agent.act({ ...WRITE, data }));
    return answer.body as { approval_id: string; sentence: string };
  };
  const opened = async (id: string) => (await organisation.ask('GET', `/owner/approvals/${id}`)).body;

  test('agents, the owner API and the approval page get the same sentence', async () => {
    const held = await hold({ kind: 'issue', title: 'Broken\u202e “login”', body: 'x', labels: [1] });
    const text = 'create issue “Broken⟦U+202E⟧ ⟦U+201C⟧login⟦U+201D⟧” and 2 other fields';
    expect(held.sentence).toBe(text);
    const id = held.approval_id;
    const { body: own } = await agent.get(`/v1/approvals/${id}`);
    expect(own.sentence).toBe(text);
    const whole = await opened(id);
    expect(whole.sentence).toEqual({
      text,
      template: expect.stringMatching(/^[0-9a-f]{16}$/),
      parts: [
        { text: 'create ' },
        { value: 'issue', strong: true },
        { text: ' ' },
        { value: 'Broken⟦U+202E⟧ ⟦U+201C⟧login⟦U+201D⟧', quoted: true },
        { text: ' and 2 other fields' },
      ],
    });
    const { body: list } = await organisation.ask('GET', '/owner/approvals?status=pending');
    expect(list.approvals.find((one: { approval_id: string }) => one.approval_id === id).sentence).toEqual(
      whole.sentence,
    );
    const page = await fetch(`${world.running.baseUrl}/approve/${id}/request`).then(
      (answer) => answer.json() as Promise<{ sentence: unknown }>,
    );
    expect(page.sentence).toEqual(whole.sentence);
  });

  test('the link of a settled call does not show it any more', async () => {
    const { approval_id: id } = await hold({ kind: 'secret-plan', title: 'x' });
    await organisation.deny(id);
    const page = await fetch(`${world.running.baseUrl}/approve/${id}/request`).then((answer) => answer.text());
    expect(page).not.toContain('secret-plan');
  });

  test('later changes of the manifest do not change it; a call held afterwards uses the new manifest', async () => {
    const first = await hold({ kind: 'issue', title: 'A' });
    const before = await opened(first.approval_id);
    const manifest = {
      kind: 'rest',
      base_url: `${world.upstream.url}/v1`,
      auth: { type: 'bearer' },
      scopes: DEMO_SCOPES,
      sentences: { 'POST /items': 'do nothing at all' },
    };
    const place = { organisationId: organisation.id, platformId: 'demo' };
    await putPlatform(world.db, { ...place, manifest: JSON.stringify(manifest) }, Date.now());
    expect((await opened(first.approval_id)).sentence).toEqual(before.sentence);
    const second = await hold({ kind: 'issue', title: 'A' });
    expect(second.sentence).toBe('do nothing at all with 2 fields');
    expect((await opened(second.approval_id)).sentence.template).not.toBe(before.sentence.template);
    await putPlatform(world.db, { ...place, manifest: JSON.stringify({ ...manifest, sentences: TITLES }) }, Date.now());
  });

  test('a call that was held before sentences existed gets one from its method and path', async () => {
    const { approval_id: id } = await hold({ kind: 'issue', title: 'A' });
    await world.db.updateTable('approvals').set({ sentence: null }).where('id', '=', id).execute();
    expect((await opened(id)).sentence).toMatchObject({ text: 'send a POST to /items', template: null });
  });

  test('it is sealed like the request that it quotes, survives key rotation, and is refused in another row', async () => {
    const [{ approval_id: id }, { approval_id: other }] = [
      await hold({ kind: 'a', title: 'mine' }),
      await hold({ kind: 'b', title: 'other' }),
    ];
    const sealedOf = async (one: string) =>
      (await world.db.selectFrom('approvals').select('sentence').where('id', '=', one).executeTakeFirstOrThrow())
        .sentence!;
    expect(Buffer.from(await sealedOf(id)).toString('latin1')).not.toContain('mine');
    const { broker } = world.running;
    const keys = broker.vault.masterKeys();
    broker.vault.useMasterKeys({ current: generateMasterKey().key, previous: [keys.current] });
    await rewrapAll(broker.store, broker.vault);
    broker.vault.useMasterKeys({ current: broker.vault.masterKeys().current, previous: [] });
    expect((await opened(id)).sentence.text).toBe('create a “mine”');
    await world.db
      .updateTable('approvals')
      .set({ sentence: await sealedOf(other) })
      .where('id', '=', id)
      .execute();
    expect((await opened(id)).sentence.text).toBe('send a POST to /items');
  });

  test('activity shows it in every row of that call, and for other rows a sentence from method and path', async () => {
    const { approval_id: id } = await hold({ kind: 'issue', title: 'Only once' });
    await organisation.deny(id);
    await agent.act({ ...WRITE, endpoint: '/items/7', method: 'PATCH', data: { title: 'x' } });
    const { body } = await organisation.ask('GET', `/owner/audit?agent=${agent.agentId}&limit=20`);
    const said = (body.rows as { approval_id: string | null; sentence: { text: string } | null }[]).map((row) => [
      row.approval_id === id,
      row.sentence?.text,
    ]);
    expect(said.slice(0, 3)).toEqual([
      [false, 'send a PATCH to /items/7'],
      [true, 'create issue “Only once”'],
      [true, 'create issue “Only once”'],
    ]);
    expect(body.rows[2].rules).toEqual([
      { source: 'policy', name: 'rule 2', effect: 'require_approval', says: 'POST waits' },
    ]);
    const kept = await world.db.selectFrom('audit_rows').selectAll().where('approval_id', '=', id).execute();
    expect(JSON.stringify(kept)).not.toContain('Only once');
  });

  test('rows of a platform whose manifest cannot be read any more can still be read', async () => {
    const other = await world.demoOrganisation({
      manifest: { sentences: { 'PATCH /items/*': 'change item **{1}**' } },
    });
    const one = await other.agent();
    await one.act({ ...WRITE, endpoint: '/items/7', method: 'PATCH', data: {} });
    const first = async () => (await other.ask('GET', '/owner/audit')).body.rows[0].sentence.text;
    expect(await first()).toBe('change item 7');
    await putPlatform(
      world.db,
      { organisationId: other.id, platformId: 'demo', manifest: '{"kind":"none"}' },
      Date.now(),
    );
    expect(await first()).toBe('send a PATCH to /items/7');
  });

  test('a built-in platform that was stored before sentences existed uses those of the built-in manifest', async () => {
    const { sentences: _, minor_units: __, presets: ___, ...before } = BUILTIN_PLATFORMS.stripe;
    const old = await world.organisation();
    const platform = await old.platform({ id: 'pay', manifest: { ...before, base_url: world.upstream.url } });
    const scopeList = Object.keys(before.scopes);
    const clerk = await old.agent({
      rules: [{ effect: 'require_approval' }],
      grants: { [platform]: { scopeList } },
    });
    const refund = { platform, endpoint: '/v1/refunds', method: 'POST', data: { payment_intent: 'pi_1', amount: 500 } };
    const scope = scopeList.find((one) => (before.scopes[one] ?? []).includes('POST /v1/refunds'));
    const held = await clerk.act({ ...refund, scope });
    expect([held.status, held.body.sentence]).toEqual([202, expect.stringMatching(/^refund .*pi_1/)]);
  });

  test('a rule without a name is described by its content, also after the policy changed', async () => {
    const { approval_id: id } = await hold({ kind: 'issue', title: 'A' });
    const { held_because: because } = await opened(id);
    expect(because.rules).toEqual([
      { source: 'policy', name: 'rule 2', effect: 'require_approval', says: 'POST waits' },
    ]);
    const page = await fetch(`${world.running.baseUrl}/approve/${id}/request`).then(
      (answer) => answer.json() as Promise<{ held_because: { rules: unknown } }>,
    );
    expect(page.held_because.rules).toEqual(because.rules);
  });
});
