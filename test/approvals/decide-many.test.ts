/** Bulk decisions on held calls: each decided independently, each with its own result, and only calls that were shown. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { decideMany, MAX_DECIDED } from '../../broker/approvals/decide-many.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { expectStatus } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { postgresNote, STORES, testOnOne } from '../world/stores.ts';
import { fresh, givenWorld, shared, WRITE } from '../world/world.ts';

type Item = { approval_id: string; request_hash: string };
type Result = { approval_id: string; outcome: string; detail: string | null; decided_by_email: string | null };

describe.each(STORES)(`several held calls on %s${postgresNote}`, (store) => {
  /** For tests that do not depend on the store's SQL. */
  const onOne = testOnOne(store);
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent());

  const hold = async (count: number): Promise<Item[]> => {
    for (let at = 0; at < count; at++) {
      await expectStatus(202, agent.act({ ...WRITE, data: { title: `call ${at}` } }));
    }
    const { body } = await organisation.ask('GET', `/owner/approvals?status=pending&agent=${agent.agentId}`);
    return body.approvals.map(({ approval_id, request_hash }: Item) => ({ approval_id, request_hash }));
  };
  const decide = (decision: string, items: unknown, more: object = {}, by?: OwnerTable) =>
    organisation.ask('POST', '/owner/approvals/decide', { decision, items, ...more }, by);
  const outcomes = (answer: { body: { results: Result[] } }) => answer.body.results.map(({ outcome }) => outcome);
  const statusOf = async ({ approval_id }: Item) => (await agent.get(`/v1/approvals/${approval_id}`)).body.status;
  const made = () => world.upstream.seen.filter(({ method }) => method === 'POST').length;

  test('are approved in the order of the request, each made once, each with its own row and receipt', async () => {
    const items = await hold(6);
    const answer = await expectStatus(200, decide('approve', items, { note: 'All parcels arrived broken.' }));
    expect(outcomes(answer)).toEqual(Array(6).fill('approved'));
    expect(answer.body.results.map((one: Result) => one.approval_id)).toEqual(items.map((one) => one.approval_id));
    expect(answer.body.results[0]).toMatchObject({
      detail: null,
      decided_by_email: organisation.owner.email,
      approval: {
        status: 'approved',
        how: 'api',
        note: 'All parcels arrived broken.',
        result_summary: expect.stringContaining('status 200'),
      },
    });
    expect(made()).toBe(6);
    const { rows } = (await organisation.ask('GET', `/owner/audit?reason=approval_approved&agent=${agent.agentId}`))
      .body;
    expect(rows).toHaveLength(6);
    for (const row of rows) expect(row.receipt_kid).toEqual(expect.any(String));
    expect(new Set(rows.map((row: { approval_id: string }) => row.approval_id)).size).toBe(6);
  });

  onOne('are denied, and nothing is sent', async () => {
    const items = await hold(3);
    const answer = await decide('deny', items, { note: 'Not today.' });
    expect(outcomes(answer)).toEqual(Array(3).fill('denied'));
    for (const item of items)
      expect((await agent.get(`/v1/approvals/${item.approval_id}`)).body).toMatchObject({
        status: 'denied',
        note: 'Not today.',
      });
    expect(made()).toBe(0);
  });

  onOne('what fails is told of each, and stops no other', async () => {
    const items = await hold(4);
    const [first, second, third, fourth] = items as [Item, Item, Item, Item];
    const other = await world.demoOrganisation();
    const theirs = await (await other.agent()).hold(WRITE);
    const { request_hash } = (await other.ask('GET', `/owner/approvals/${theirs}`)).body;
    const colleague = await organisation.addOwner('approver');
    await organisation.deny(second.approval_id, {}, colleague);
    const answer = await decide('approve', [
      first,
      second,
      { ...third, request_hash: 'f'.repeat(64) },
      { approval_id: theirs, request_hash },
      { approval_id: uuidv4(), request_hash },
      { ...fourth, approval_id: fourth.approval_id.toUpperCase() },
    ]);
    expect(outcomes(answer)).toEqual([
      'approved',
      'already_decided',
      'request_changed',
      'not_found',
      'not_found',
      'approved',
    ]);
    expect(answer.body.results[1]).toMatchObject({
      detail: `It was denied already by ${colleague.email}.`,
      decided_by_email: colleague.email,
      approval: { status: 'denied' },
    });
    expect(answer.body.results[3]).toMatchObject({ approval: null, decided_by_email: null });
    expect(answer.text).not.toContain(other.owner.email);
    expect(await statusOf(third)).toBe('pending');
    expect(made()).toBe(2);
    expect((await other.ask('GET', `/owner/approvals/${theirs}`)).body.status).toBe('pending');
  });

  onOne('whoever may not decide any more approves none of the rest', async () => {
    const colleague = await organisation.addOwner('approver');
    const items = await hold(12);
    const waiting: (() => void)[] = [];
    world.upstream.answer = (_request, response) => void waiting.push(() => response.writeHead(200).end('{}'));
    const asked = decide('approve', items, {}, colleague);
    await expect.poll(() => waiting.length).toBe(4);
    const demoted = { email: colleague.email, role: 'viewer' };
    expect((await organisation.ask('POST', '/owner/owners', demoted)).status).toBe(200);
    world.upstream.answer = undefined;
    for (const answer of waiting) answer();
    expect(outcomes(await asked)).toEqual([...Array(4).fill('approved'), ...Array(8).fill('not_decided')]);
    expect(made()).toBe(4);
    expect(await statusOf(items[4]!)).toBe('pending');
  });

  onOne(
    'while the platform does not answer, no more than may run concurrently are approved, and the answer does not wait',
    async () => {
      const items = await hold(6);
      const waiting: (() => void)[] = [];
      world.upstream.answer = (_request, response) => void waiting.push(() => response.writeHead(200).end('{}'));
      onTestFinished(() => {
        for (const answer of waiting) answer();
      });
      const settled = await decideMany(
        world.running.services,
        { owner: organisation.owner, how: 'api', correlationId: uuidv4() },
        {
          status: 'approved',
          items: items.map((one) => ({ approvalId: one.approval_id, requestHash: one.request_hash })),
        },
        { timeoutMs: 500 },
      );
      expect(settled.map(({ kind }) => kind)).toEqual([...Array(4).fill('decided'), ...Array(2).fill('not_decided')]);
      expect(await statusOf(items[4]!)).toBe('pending');
      await expect.poll(() => waiting.length).toBe(4);
    },
  );

  onOne('the same one twice, none, or more than are allowed are refused as a whole', async () => {
    const [item] = (await hold(1)) as [Item];
    const many = Array.from({ length: MAX_DECIDED + 1 }, () => ({ ...item, approval_id: uuidv4() }));
    const twice = [item, { ...item, approval_id: item.approval_id.toUpperCase() }];
    for (const items of [twice, [], many, [{ approval_id: item.approval_id }], [{ ...item, request_hash: 'x' }]])
      expectEnvelope(await decide('approve', items), 400, 'invalid_request');
    expectEnvelope(await decide('postpone', [item]), 400, 'invalid_request');
    expect(await statusOf(item)).toBe('pending');
    expect(outcomes(await decide('deny', many.slice(1)))).toEqual(Array(MAX_DECIDED).fill('not_found'));
  });

  onOne('a viewer decides none', async () => {
    const [item] = (await hold(1)) as [Item];
    expectEnvelope(await decide('approve', [item], {}, await organisation.addOwner('viewer')), 403, 'forbidden');
    expect(await statusOf(item)).toBe('pending');
  });

  test('two owners concurrently: each call is decided once, and both get the result of every call', async () => {
    const items = await hold(8);
    const colleague = await organisation.addOwner('approver');
    const [mine, theirs] = await Promise.all([
      decide('approve', items.slice(0, 6)),
      decide('deny', items.slice(2).reverse(), {}, colleague),
    ]);
    expect(mine.body.results).toHaveLength(6);
    expect(theirs.body.results).toHaveLength(6);
    const said = new Map<string, string[]>();
    for (const { approval_id, outcome } of [...mine.body.results, ...theirs.body.results] as Result[])
      said.set(approval_id, [...(said.get(approval_id) ?? []), outcome]);
    for (const item of items) {
      const told = said.get(item.approval_id)!;
      const status = await statusOf(item);
      expect(['approved', 'denied']).toContain(status);
      expect(told.filter((one) => one === status)).toHaveLength(1);
      expect(told.filter((one) => one !== status)).toEqual(told.length === 2 ? ['already_decided'] : []);
    }
    const { rows } = (await organisation.ask('GET', `/owner/audit?kind=event&agent=${agent.agentId}`)).body;
    expect(rows.filter(({ reason }: { reason: string }) => reason.startsWith('approval_'))).toHaveLength(8);
  });

  onOne('require_user_verification is about passkeys: a session approves several as it approves one', async () => {
    const strict = await world.demoOrganisation();
    await strict.ask('POST', '/owner/organisation', { require_user_verification: true });
    const strictAgent = await strict.agent();
    const one = await strict.approve(await strictAgent.hold(WRITE));
    expect([one.status, one.body.status]).toEqual([200, 'approved']);
    const id = await strictAgent.hold(WRITE);
    const { request_hash } = (await strict.ask('GET', `/owner/approvals/${id}`)).body;
    const items = [{ approval_id: id, request_hash }];
    const several = await strict.ask('POST', '/owner/approvals/decide', { decision: 'approve', items });
    expect(outcomes(several)).toEqual(['approved']);
  });

  test('a decision that cannot be recorded is not made, and is reported as such', async () => {
    const items = await hold(2);
    await whileAuditRowsAreRefused(world, async () => {
      const answer = await decide('approve', items);
      expect(outcomes(answer)).toEqual(['not_decided', 'not_decided']);
    });
    expect(made()).toBe(0);
    expect(outcomes(await decide('approve', items))).toEqual(['approved', 'approved']);
  });

  onOne('twenty of one agent at a slow platform are all made: never more at once than its family may', async () => {
    let open = 0;
    let most = 0;
    world.upstream.answer = async (_request, response) => {
      most = Math.max(most, ++open);
      await new Promise((over) => setTimeout(over, 50));
      open--;
      response.setHeader('content-type', 'application/json').end('{}');
    };
    const answer = await decide('approve', await hold(20));
    expect(outcomes(answer)).toEqual(Array(20).fill('approved'));
    expect(
      answer.body.results.every(
        (one: { approval: { execution_error: unknown } }) => one.approval.execution_error === null,
      ),
    ).toBe(true);
    expect(made()).toBe(20);
    expect(most).toBeLessThanOrEqual(4);
  });
});
