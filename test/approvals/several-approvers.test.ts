/** Calls that several people have to approve (`approvers` of a rule). */
import { describe, expect, test } from 'vitest';
import { endOwner } from '../../broker/admin/organisations/owners.ts';
import { type Decided, decideHeld } from '../../broker/approvals/decide.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { findApproval } from '../../broker/store/approvals.ts';
import { putOwner } from '../../broker/store/organisations.ts';
import { forgetIdentity } from '../../broker/store/owner-identities.ts';
import { send } from '../world/agent.ts';
import { evidenceOf, expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { approveWith, assertFinish, assertion, decideWith, enrol } from '../world/passkeys.ts';
import { postgresNote, STORES, testOnOne } from '../world/stores.ts';
import { fresh, givenWorld, WRITE } from '../world/world.ts';

const TWO = { name: 'payments', effect: 'require_approval', methods: ['POST'], approvers: 2 };

describe.each(STORES)(`calls that several people approve on %s${postgresNote}`, (store) => {
  const onOne = testOnOne(store);
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const ann = fresh(() => organisation.addOwner('approver'));
  const bob = fresh(() => organisation.addOwner('approver'));
  const agent = fresh(() => organisation.agent({ rules: [{ effect: 'allow' }, TWO] }));

  const hold = (more: object = {}) => agent.hold({ ...WRITE, ...more });
  const decide = (id: string, verb: string, by = ann, body: object = {}) =>
    organisation.ask('POST', `/owner/approvals/${id}/${verb}`, body, by);
  const shown = async (id: string) => (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
  const events = async (reason: string) =>
    (await organisation.ask('GET', `/owner/audit?reason=${reason}&agent=${agent.agentId}`)).body.rows;
  const made = () => world.upstream.seen.filter(({ method }) => method === 'POST').length;

  onOne('the agent is answered that several people have to approve', async () => {
    expect((await agent.act(WRITE)).body.message).toContain('payments requires the approval of 2 people');
  });

  test('the first approval is recorded, and the call waits; the second makes it, once', async () => {
    const id = await hold();
    const first = await withoutCalls(world, () => decide(id, 'approve', ann, { note: 'Fine with me.' }));
    expect(first.body, first.text).toMatchObject({
      status: 'pending',
      executed_at: null,
      decided_by: null,
      approvers: { needed: 2, given: 1 },
    });
    expect(await shown(id)).toMatchObject({
      status: 'pending',
      approvers: { needed: 2, given: 1 },
      approved_before: [{ approved_by: ann.id, approved_by_email: ann.email, how: 'api' }],
    });
    expect((await agent.get(`/v1/approvals/${id}`)).body).toMatchObject({
      status: 'pending',
      approvers: { needed: 2, given: 1 },
    });
    const [given] = await events('approval_given');
    expect(given).toMatchObject({ approval_id: id, detail: 'Fine with me.' });
    expect((await evidenceOf(world, agent, given.id)).payload).toMatchObject({
      reason: 'approval_given',
      approval: { decided_by: ann.id, approvers: 2, approved_before: [] },
    });

    const second = await decide(id, 'approve', bob);
    expect(second.body, second.text).toMatchObject({
      status: 'approved',
      decided_by: bob.id,
      approvers: { needed: 2, given: 2 },
    });
    expect(second.body.executed_at).not.toBeNull();
    expect(made()).toBe(1);
    const { audit_ids, approved_before } = await shown(id);
    expect(approved_before.map((one: { approved_by: string }) => one.approved_by)).toEqual([ann.id]);
    // The history of each row of the call, too.
    const { rows } = (await organisation.ask('GET', `/owner/audit?history=true&text=${id}`)).body;
    for (const { history } of rows)
      expect(history).toMatchObject([
        { step: 'held' },
        { step: 'approved_in_part', by: ann.id, how: 'api', audit_id: given.id, receipt_kid: expect.any(String) },
        { step: 'approved', by: bob.id },
        { step: 'made', upstream_status: 200 },
      ]);
    // The receipts of the decision and of the call name both.
    for (const audit of [audit_ids.decided, audit_ids.replayed])
      expect((await evidenceOf(world, agent, audit)).payload.approval).toMatchObject({
        decided_by: bob.id,
        approvers: 2,
        approved_before: [{ decided_by: ann.id, how: 'api', audit_id: given.id }],
      });
  });

  test('the store refuses an approval that a release without `approvers` would make, with one person', async () => {
    const id = await hold();
    const { store, instanceId } = world.running.broker;
    const decision = { status: 'approved', decided_at: Date.now(), decided_how: 'api', decision_audit_id: uuidv4() };
    const claim = { exec_state: 'claimed', lease_owner: instanceId, fence: 1 };
    const byOlder = (by: string) =>
      store.db
        .updateTable('approvals')
        .set({ ...decision, ...claim, decided_by: by } as object)
        .where('id', '=', id)
        .execute();
    await expect(byOlder(ann.id)).rejects.toThrow('more people have to approve this call');
    await decide(id, 'approve', ann);
    await expect(byOlder(ann.id)).rejects.toThrow('more people have to approve this call');
    expect(await shown(id)).toMatchObject({ status: 'pending', approvers: { needed: 2, given: 1 } });
    expect((await decide(id, 'approve', bob)).body).toMatchObject({ status: 'approved' });
  });

  onOne('the same person counts once, and a repeated approval records nothing', async () => {
    const id = await hold();
    for (let time = 0; time < 3; time++)
      expect((await decide(id, 'approve')).body).toMatchObject({
        status: 'pending',
        approvers: { needed: 2, given: 1 },
      });
    expect(await events('approval_given')).toHaveLength(1);
    expect(made()).toBe(0);
  });

  onOne('one denial denies, of the first person as of somebody who approved before', async () => {
    const denied = await hold();
    expect((await decide(denied, 'deny', ann)).body).toMatchObject({
      status: 'denied',
      approvers: { needed: 2, given: 0 },
    });
    expectEnvelope(await decide(denied, 'approve', bob), 409, 'already_decided');
    for (const by of [ann, bob]) {
      const id = await hold();
      await decide(id, 'approve', ann);
      expect((await decide(id, 'deny', by)).body).toMatchObject({
        status: 'denied',
        approvers: { needed: 2, given: 1 },
      });
      for (const late of [ann, organisation.owner])
        expectEnvelope(await decide(id, 'approve', late), 409, 'already_decided');
    }
    expect(made()).toBe(0);
  });

  test('of concurrent approvals each counts, and the call is made once', async () => {
    const three = await organisation.agent({ rules: [{ effect: 'allow' }, { ...TWO, approvers: 3 }] });
    const ids = await Promise.all(
      Array.from({ length: 4 }, async (_, at) => await three.hold({ ...WRITE, data: { at } })),
    );
    const people = [ann, bob, organisation.owner];
    const answers = await Promise.all(ids.flatMap((id) => people.map((by) => decide(id, 'approve', by))));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    for (const id of ids) {
      await expect.poll(async () => (await shown(id)).executed_at).toEqual(expect.any(String));
      expect(await shown(id)).toMatchObject({ status: 'approved', approvers: { needed: 3, given: 3 } });
    }
    expect(made()).toBe(4);
  });

  onOne('an approval during another one, after that has read the call, counts first', async () => {
    const id = await hold();
    const { services, broker } = world.running;
    const { db } = broker.store;
    const decision = { status: 'approved', how: 'api' } as const;
    const ids = { correlationId: uuidv4() };
    let other: Decided | undefined;
    const between = db.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        other ??= await decideHeld(services, ann, id, decision, ids);
        return result;
      },
    });
    const raced = { ...services, broker: { ...broker, store: { ...broker.store, db: between } } };
    const decided = await decideHeld(raced, bob, id, decision, ids);
    expect([other?.kind, decided.kind]).toEqual(['approved_in_part', 'decided']);
    await expect.poll(made).toBe(1);
  });

  onOne.each([
    ['is removed', (tx: Parameters<typeof endOwner>[0]) => endOwner(tx, ann, organisation.owner.id, Date.now())],
    ['becomes a viewer', (tx: Parameters<typeof endOwner>[0]) => putOwner(tx, { ...ann, role: 'viewer' })],
    ['is another person', (tx: Parameters<typeof endOwner>[0]) => forgetIdentity(tx, ann, Date.now())],
  ])('the approval of somebody who %s meanwhile does not count', async (_what, lose) => {
    const id = await hold();
    await decide(id, 'approve', ann);
    await lose(world.db);
    // Whoever approves next has to know that the call still waits then.
    const waits = { approvers: { needed: 2, given: 0 } };
    expect(await shown(id)).toMatchObject({ ...waits, approved_before: [] });
    expect((await agent.get(`/v1/approvals/${id}`)).body).toMatchObject(waits);
    expect((await send(`${world.running.baseUrl}/approve/${id}/request`, {})).body).toMatchObject(waits);
    expect((await decide(id, 'approve', bob)).body).toMatchObject({
      status: 'pending',
      approvers: { needed: 2, given: 1 },
    });
    expect(made()).toBe(0);
    expect((await decide(id, 'approve', organisation.owner)).body).toMatchObject({ status: 'approved' });
    expect(made()).toBe(1);
  });

  test('an approval that is being recorded while the account is unlinked does not count either', async () => {
    const id = await hold();
    const lock = (db: Parameters<typeof endOwner>[0]) =>
      db.updateTable('approvals').set({ id }).where('id', '=', id).execute();
    const unlink = { email: ann.email, role: 'approver', forget_identity: true };
    const [approved, unlinked] = await withLockContention(
      world,
      lock,
      () => Promise.all([decide(id, 'approve', ann), organisation.ask('POST', '/owner/owners', unlink)]),
      { waiters: 2 },
    );
    expect(unlinked.status, unlinked.text).toBe(200);
    expect([200, 403]).toContain(approved.status);
    expect((await shown(id)).approvers).toEqual({ needed: 2, given: 0 });
  });

  onOne('a correction withdraws the approvals: they were of another request', async () => {
    const id = await hold({ data: { amount: 500 } });
    await decide(id, 'approve', ann);
    const { request_hash } = await shown(id);
    const corrected = await organisation.ask(
      'POST',
      `/owner/approvals/${id}/correct`,
      { request_hash, data: { amount: 50 } },
      bob,
    );
    expect(corrected.body, corrected.text).toMatchObject({ status: 'pending', approvers: { needed: 2, given: 0 } });
    const now = { request_hash: corrected.body.request_hash };
    expect((await decide(id, 'approve', ann, now)).body).toMatchObject({
      status: 'pending',
      approvers: { needed: 2, given: 1 },
    });
    expect((await decide(id, 'approve', bob, now)).body.status).toBe('approved');
    expect(JSON.parse(world.upstream.seen.at(-1)!.body)).toEqual({ amount: 50 });
  });

  onOne(
    'a corrected call needs as many people, and may be decided in the channels, as the rules say of it now',
    async () => {
      const { approvers: _, ...plain } = TWO;
      const other = await organisation.agent({ rules: [{ effect: 'allow' }, { ...plain, decide_in: ['ops'] }] });
      const id = await other.hold(WRITE);
      const correct = async (amount: number) => {
        const { request_hash } = await shown(id);
        const body = { request_hash, data: { amount } };
        return (await organisation.ask('POST', `/owner/approvals/${id}/correct`, body, bob)).body;
      };
      const decideIn = async () => (await findApproval(world.db, organisation.id, id))!.decide_in;
      expect([(await shown(id)).approvers, await decideIn()]).toEqual([null, '["ops"]']);
      await organisation.guardrails([TWO]);
      const corrected = await correct(1);
      expect([corrected.approvers, await decideIn()]).toEqual([{ needed: 2, given: 0 }, null]);
      await organisation.guardrails([]);
      expect([(await correct(2)).approvers, await decideIn()]).toEqual([null, '["ops"]']);
      await organisation.guardrails([TWO]);
      const { request_hash } = await correct(3);
      expect((await decide(id, 'approve', ann, { request_hash })).body.status).toBe('pending');
      expect((await decide(id, 'approve', bob, { request_hash })).body.status).toBe('approved');
      expect(made()).toBe(1);
    },
  );

  onOne('by passkey without a session: the answer is pending until the last person has signed', async () => {
    const id = await hold();
    const [owners, bobs] = [await enrol(world, organisation), await enrol(world, organisation, { by: bob })];
    const first = await approveWith(world, id, owners);
    expect(first.body, first.text).toEqual({ status: 'pending', approval_id: id, executed_at: null });
    const second = await decideWith(world, 'approve', id, bobs);
    expect(second.body, second.text).toMatchObject({ status: 'approved', approvers: { needed: 2, given: 2 } });
    const { audit_ids } = await shown(id);
    const { approval } = (await evidenceOf(world, agent, audit_ids.replayed)).payload;
    expect(approval.passkey.credential_id).toBe(bobs.credentialId);
    expect(approval.approved_before[0].passkey.credential_id).toBe(owners.credentialId);
  });

  onOne('an assertion that was used for the first approval is no second one', async () => {
    const id = await hold();
    const key = await enrol(world, organisation, { by: ann });
    const response = await assertion(world, 'approve', key, { id });
    for (let time = 0; time < 2; time++)
      expect((await assertFinish(world, 'approve', response)).body).toMatchObject({
        status: 'pending',
        approvers: { needed: 2, given: 1 },
      });
    expect(await events('approval_given')).toHaveLength(1);
  });

  onOne('several calls together: each is approved in part', async () => {
    const ids = [await hold(), await hold({ data: { title: 'b' } })];
    const items = await Promise.all(
      ids.map(async (id) => ({ approval_id: id, request_hash: (await shown(id)).request_hash })),
    );
    const together = (by: typeof ann) =>
      organisation.ask('POST', '/owner/approvals/decide', { decision: 'approve', items }, by);
    const outcomes = async (by: typeof ann) =>
      (await together(by)).body.results.map((one: { outcome: string }) => one.outcome);
    expect(await outcomes(ann)).toEqual(['approved_in_part', 'approved_in_part']);
    expect(made()).toBe(0);
    expect(await outcomes(bob)).toEqual(['approved', 'approved']);
    expect(made()).toBe(2);
  });

  onOne('as many people as the strictest rule says; a rule that says nothing needs one', async () => {
    const one = { ...TWO, name: 'one' };
    const { approvers: _, ...plain } = one;
    await organisation.guardrails([{ ...TWO, name: 'three', approvers: 3 }]);
    const id = await hold();
    expect((await shown(id)).approvers).toEqual({ needed: 3, given: 0 });
    await organisation.guardrails([]);
    const other = await organisation.agent({ rules: [{ effect: 'allow' }, plain] });
    const approval_id = await other.hold(WRITE);
    expect((await shown(approval_id)).approvers).toBeNull();
    expect((await decide(approval_id, 'approve')).body.status).toBe('approved');
  });

  onOne('a rule that needs more people since the call was held: the approved call is not made', async () => {
    const { approvers: _, ...plain } = TWO;
    const policy = await organisation.policy([{ effect: 'allow' }, plain], 'changing');
    const one = await organisation.agent({ policy });
    const id = await one.hold(WRITE);
    await organisation.guardrails([{ ...TWO, name: 'late' }]);
    expect((await decide(id, 'approve')).body).toMatchObject({
      status: 'approved',
      executed_at: null,
      execution_error: expect.stringMatching(
        /^more_approvers_needed: The rules now need the approval of 2 people, and this call has that of 1\./,
      ),
    });
    expect(made()).toBe(0);
  });

  onOne('no standing approval is made from such a call', async () => {
    const id = await hold();
    expect((await shown(id)).standing).toMatchObject({ why: expect.any(String) });
    const standing = { count: 1, for_seconds: 60 };
    const refused = await decide(id, 'approve', ann, { standing });
    expectEnvelope(refused, 400, 'invalid_request');
    expect(refused.body.detail).toBe(
      '2 people have to approve each such call, so one approval never counts for others.',
    );
    expect((await shown(id)).approvers).toEqual({ needed: 2, given: 0 });
  });

  onOne.each([
    [{ ...TWO, effect: 'deny' }, 'approvers'],
    [{ ...TWO, approvers: 6 }, 'approvers'],
    [{ ...TWO, approvers: 0 }, 'approvers'],
    [{ ...TWO, approvers: 1.5 }, 'approvers'],
  ])('a rule %j is refused', async (rule, member) => {
    const refused = await organisation.ask('POST', '/owner/policies', {
      name: `p-${uuidv4().slice(0, 8)}`,
      rules: [rule],
    });
    expectEnvelope(refused, 400, 'invalid_governance');
    expect(refused.text).toContain(member);
  });

  onOne('a guardrail is not replaced by a standing approval when it needs several people', async () => {
    const refused = await organisation.ask('POST', '/owner/guardrails', { guardrails: [{ ...TWO, remember: true }] });
    expectEnvelope(refused, 400, 'invalid_governance');
    expect(refused.text).toContain('a standing approval is given by one person');
  });
});
