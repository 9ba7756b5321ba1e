/** The outbox and the single sender: which notices are sent, to whom, when, and what misbehaving channels delay. */

import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { setCredentialStatus } from '../../broker/store/connections.ts';
import { takeLease } from '../../broker/store/leases.ts';
import { setAttention } from '../../broker/store/oauth-tokens.ts';
import { operatorNumbers } from '../../broker/store/operator-numbers.ts';
import { expectStatus, jsonPost, send } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { enrol } from '../world/passkeys.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { type Came, startChannelServer } from '../world/servers/channel-server.ts';
import { type Mail, startMailServer } from '../world/servers/mail-server.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { CANARY, fresh, givenWorld, shared, WRITE } from '../world/world.ts';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const MINUTE = 60_000;
/** Notices on a channel that is down. */
const MANY = 10_000;

/** A server that does not speak HTTP. */
let garbage: string;
/** A mail server, and the address that it refuses. */
let mail: { port: number; mails: Mail[] };
let refused = '';
const server = shared(() => startChannelServer());
const other = shared(() => startChannelServer());
beforeAll(async () => {
  mail = await startMailServer('unused', {
    disabledCommands: ['STARTTLS'],
    onRcptTo: ({ address }, _session, done) =>
      address === refused ? done(Object.assign(new Error('no such user'), { responseCode: 550 })) : done(),
  });
  const talker = createServer((socket) => {
    socket.on('error', () => {});
    socket.end('250 hello\r\n');
  });
  const port = await listenOnLoopback(talker);
  garbage = `127.0.0.1:${port}`;
  afterFile(async () => {
    talker.close();
    await Promise.all([server.close(), other.close()]);
  });
});
beforeEach(() => {
  for (const each of [server, other]) {
    each.seen.length = 0;
    each.answer = (_request, response) => response.writeHead(204).end();
  }
  mail.mails.length = 0;
  refused = '';
});

describe.each(ONE_STORE)(`the sender on %s${postgresNote}`, (store) => {
  const world = givenWorld(store, () => ({
    AGENT_BROKER_ALLOW_PRIVATE: [server.address, other.address, garbage, `localhost:${mail.port}`].join(','),
  }));
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent({ name: 'triage' }));

  // What this test leaves unsent would take the sender's capacity from the next test, and be received by it.
  afterEach(async () => {
    await removeChannels();
    for (const each of [server, other]) {
      await each.pause();
      await each.resume();
    }
  });

  const addWebhook = async (more: object = {}) => {
    const channel = { name: 'hook', kind: 'webhook', url: `${server.url}/hook`, ...more };
    const made = await expectStatus(201, organisation.ask('POST', '/owner/channels', channel));
    return made.body;
  };
  const removeChannels = () =>
    world.db.deleteFrom('notice_channels').where('organisation_id', '=', organisation.id).execute();
  const channelNamed = async (name: string) =>
    (await organisation.ask('GET', '/owner/channels')).body.channels.find((one: { name: string }) => one.name === name);
  const ofOrganisation = <Table extends 'notices' | 'notice_deliveries'>(table: Table) =>
    world.db
      .selectFrom(table as 'notices')
      .selectAll()
      .where('organisation_id', '=', organisation.id)
      .execute();
  const countOf = async (table: 'notices' | 'notice_deliveries') => {
    const { count } = await world.db
      .selectFrom(table as 'notices')
      .select((eb) => eb.fn.countAll().as('count'))
      .where('organisation_id', '=', organisation.id)
      .executeTakeFirstOrThrow();
    return Number(count);
  };
  const register = (name: string) =>
    send(
      `${world.running.baseUrl}/v1/register`,
      jsonPost({ owner_id: organisation.owner.id, agent_name: name, requested_scopes: [] }),
    );

  test('a channel whose rules cannot be read delays no other one', async () => {
    await addWebhook({ name: 'odd' });
    await world.db.updateTable('notice_channels').set({ rules: '{"events":7}' }).where('name', '=', 'odd').execute();
    await addWebhook();
    await agent.hold(WRITE);
    await server.waitFor(1, 5_000);
    await expect.poll(() => ofOrganisation('notices')).toEqual([]);
    expect(server.seen).toHaveLength(1);
  });

  test('a channel that cannot be read is listed with what to do, beside the others, and works once it is set again', async () => {
    const odd = await addWebhook({ name: 'odd', events: ['call_held'] });
    const strange = await addWebhook({ name: 'strange' });
    await addWebhook();
    await world.db.updateTable('notice_channels').set({ rules: '{"events":7}' }).where('id', '=', odd.id).execute();
    await world.db.updateTable('notice_channels').set({ settings: '{}' }).where('id', '=', strange.id).execute();
    const { channels } = (await expectStatus(200, organisation.ask('GET', '/owner/channels'))).body;
    const sayingFor = (what: string) => expect.stringContaining(`The stored ${what} cannot be read`);
    expect(channels).toMatchObject([
      { name: 'hook', status: 'active', last_error: null },
      { name: 'odd', status: 'unreadable', rules: {}, settings: odd.settings, last_error: sayingFor('rules') },
      { name: 'strange', status: 'unreadable', settings: {}, last_error: sayingFor('settings') },
    ]);
    const given = { kind: 'webhook', url: `${server.url}/odd` };
    await expectStatus(200, organisation.ask('POST', `/owner/channels/${odd.id}/settings`, given));
    expect(await channelNamed('odd')).toMatchObject({ status: 'active', rules: {}, last_error: null });
    await expectStatus(200, organisation.ask('DELETE', `/owner/channels/${strange.id}`));
  });

  test('a governance file sets a channel that cannot be read again', async () => {
    const odd = await addWebhook({ name: 'odd' });
    await world.db.updateTable('notice_channels').set({ rules: '{"events":7}' }).where('id', '=', odd.id).execute();
    const document = { channels: { odd: { kind: 'webhook', url: `${server.url}/hook` } } };
    const file = { text: JSON.stringify(document), values: {} };
    await expectStatus(200, organisation.ask('POST', '/owner/governance/apply', file));
    expect(await channelNamed('odd')).toMatchObject({ status: 'active', last_error: null });
  });

  test('an added passkey causes a notice, but not on devices of other owners', async () => {
    await addWebhook();
    const colleague = await organisation.addOwner('approver');
    // Stand in for the devices of two owners.
    for (const [name, owner] of [
      ['own', organisation.owner],
      ['other', colleague],
    ] as const) {
      await addWebhook({ name, url: `${server.url}/${name}` });
      const { id } = await channelNamed(name);
      await world.db.updateTable('notice_channels').set({ owner_id: owner.id }).where('id', '=', id).execute();
    }
    await enrol(world, organisation, { name: 'Ann’s phone' });
    const [told] = await server.waitFor(2, 5_000);
    expect(server.seen.map(({ target }) => target).toSorted()).toEqual(['/hook', '/own']);
    const { type, data } = told!;
    expect([type, data.title, data.agent]).toEqual(['passkey_added.opened', 'Passkey added', null]);
    expect(data.sentence).toBe(
      `The passkey “Ann’s phone” was added for ${organisation.owner.email}. If that was somebody else, remove it`,
    );
    expect(new URL(`${data.link}`).pathname).toBe('/console/passkeys');
    await expect.poll(() => ofOrganisation('notices')).toEqual([]);
    expect(await ofOrganisation('notice_deliveries')).toHaveLength(2);
    // Without channels nothing is put into the outbox.
    const stranger = await world.organisation();
    await enrol(world, stranger);
    expect(
      await world.db.selectFrom('notices').select('id').where('organisation_id', '=', stranger.id).execute(),
    ).toEqual([]);
  });

  test('every event is sent with its name and link, and its outcome after it', async () => {
    await addWebhook();
    const id = await agent.hold(WRITE);
    const json = { headers: { 'content-type': 'application/json' } };
    const body = JSON.stringify({ platform: 'demo', scope: 'demo:delete', reason: 'REASON-TEXT' });
    const reader = await organisation.agent({ name: 'reader', grants: { demo: { scopeList: ['demo:read'] } } });
    const asked = await reader.request('POST', '/v1/access-request', { ...json, body });
    expect(asked.status, asked.text).toBeLessThan(300);
    const registered = await register('new‮comer');
    expect(registered.status, registered.text).toBeLessThan(300);
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, { reason: 'looked odd' });
    const connection = (await organisation.ask('GET', '/owner/connections')).body.connections[0].id;
    const place = { table: 'connections' as const, organisationId: organisation.id, id: connection };
    await setCredentialStatus(world.db, place, 'reauth_needed');
    const told = await server.waitFor(5, 5_000);
    expect(told.map(({ type }) => type).toSorted()).toEqual([
      'access_requested.opened',
      'agent_suspended.opened',
      'call_held.opened',
      'connection_broken.opened',
      'registration_waiting.opened',
    ]);
    const of = (event: string) => told.find(({ type }) => type.startsWith(event))!.data;
    expect(of('access_requested').sentence).toContain('demo:delete');
    expect(of('registration_waiting').sentence).toContain('new⟦U+202E⟧comer');
    expect(new URL(`${of('agent_suspended').link}`).pathname).toBe(`/console/agents/${agent.agentId}`);
    expect(of('agent_suspended').sentence).toBe('The agent triage was suspended: “looked odd”');
    for (const { body } of told) expect(body).not.toContain(CANARY);
    expect(of('connection_broken')).toMatchObject({ platform: 'demo', agent: null });
    server.seen.length = 0;
    await setCredentialStatus(world.db, place, 'active');
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/resume`, {});
    await organisation.deny(id);
    const over = await server.waitFor(3, 5_000);
    expect(over.map(({ type, data }) => [type, data.outcome]).toSorted()).toEqual([
      ['agent_suspended.outcome', 'The agent is active now'],
      ['call_held.outcome', `Denied by ${organisation.owner.email}`],
      ['connection_broken.outcome', 'The connection works again'],
    ]);
    await expect.poll(() => ofOrganisation('notices')).toEqual([]);
    // A connection that alternates causes one notice an hour.
    for (const status of ['reauth_needed', 'active', 'reauth_needed'] as const)
      await setCredentialStatus(world.db, place, status);
    await expect.poll(() => ofOrganisation('notices')).toEqual([]);
    expect(server.seen).toHaveLength(3);
    world.clock.skewMs = 61 * MINUTE;
    await setCredentialStatus(world.db, place, 'active');
    await setCredentialStatus(world.db, place, 'reauth_needed');
    await expect.poll(() => server.came().map(({ type }) => type)).toContain('connection_broken.opened');
  });

  test('a connection that gets no token is a notice until it gets one, or is connected again', async () => {
    await addWebhook();
    const connection = (await organisation.ask('GET', '/owner/connections')).body.connections[0].id;
    const place = { table: 'connections' as const, organisationId: organisation.id, id: connection };
    await setAttention(world.db, place, 1);
    const [told] = await server.waitFor(1, 5_000);
    expect(told).toMatchObject({ type: 'connection_broken.opened', data: { platform: 'demo' } });
    expect(told!.data.sentence).toMatch(/^The connection .* to .* gets no token from its authorization server$/);
    server.seen.length = 0;
    // Another cause, and one of two causes that ends, are neither a second notice nor its end.
    await setCredentialStatus(world.db, place, 'reauth_needed');
    await setAttention(world.db, place, 0);
    await expect.poll(() => ofOrganisation('notices')).toEqual([]);
    expect(server.seen).toEqual([]);
    await setCredentialStatus(world.db, place, 'active');
    const [over] = await server.waitFor(1, 5_000);
    expect([over!.type, over!.data.outcome]).toEqual(['connection_broken.outcome', 'The connection works again']);
  });

  test('what ends because its agent is revoked does not count as undecided', async () => {
    await addWebhook();
    await agent.hold(WRITE);
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ platform: 'demo', scope: 'demo:delete', reason: 'x' });
    const reader = await organisation.agent({ name: 'reader', grants: { demo: { scopeList: ['demo:read'] } } });
    await reader.request('POST', '/v1/access-request', { headers, body });
    await server.waitFor(2, 5_000);
    const child = await childOf(world, organisation, agent);
    await child.hold(WRITE);
    await server.waitFor(3, 5_000);
    for (const { agentId } of [agent, reader]) await organisation.ask('POST', `/owner/agents/${agentId}/revoke`, {});
    await server.waitFor(6, 5_000);
    expect(
      server
        .came()
        .map(({ type, data }) => [type, data.outcome])
        .slice(3)
        .toSorted(),
    ).toEqual([
      ['access_requested.outcome', 'Ended with its agent'],
      ['call_held.outcome', 'Ended with its agent'],
      ['call_held.outcome', 'Ended with its agent'],
    ]);
  });

  test('the outcome of an approved call is sent again when the platform refuses the call later', async () => {
    const own = await world.demoOrganisation({ manifest: { base_url: other.url } });
    const calling = await own.agent();
    const hook = { name: 'hook', kind: 'webhook', url: `${server.url}/hook` };
    expect((await own.ask('POST', '/owner/channels', hook)).status).toBe(201);
    const asked: ServerResponse[] = [];
    other.answer = (_request, response) => asked.push(response);
    const id = await calling.hold(WRITE);
    await server.waitFor(1);
    const approved = own.approve(id);
    await server.waitFor(2);
    expect(asked).toHaveLength(1);
    asked[0]!.writeHead(422, { 'content-type': 'application/json' }).end('{}');
    expect((await approved).status).toBe(200);
    const outcomes = (await server.waitFor(3)).slice(1);
    expect(outcomes.map(({ type, data }) => [type, data.outcome])).toEqual([
      ['call_held.outcome', `Approved by ${own.owner.email}`],
      ['call_held.outcome', `Approved by ${own.owner.email} and made, but the platform answered with status 422`],
    ]);
    expect(outcomes[0]!.id).not.toBe(outcomes[1]!.id);
    // A call that succeeds has one outcome.
    other.answer = undefined;
    const next = await calling.hold(WRITE);
    await server.waitFor(4);
    await own.approve(next);
    await server.waitFor(5);
    await expect.poll(() => world.db.selectFrom('notices').selectAll().execute()).toEqual([]);
    expect(
      server
        .came()
        .slice(4)
        .map(({ data }) => data.outcome),
    ).toEqual([`Approved by ${own.owner.email}`]);
  });

  test('a connection that broke again within a millisecond of working causes a notice, whichever event is read first', async () => {
    await addWebhook();
    const connection = (await organisation.ask('GET', '/owner/connections')).body.connections[0].id;
    const place = { table: 'connections' as const, organisationId: organisation.id, id: connection };
    await world.db.transaction().execute(async (tx) => {
      for (const status of ['reauth_needed', 'active', 'reauth_needed'] as const)
        await setCredentialStatus(tx, place, status);
      await tx.deleteFrom('notices').where('organisation_id', '=', organisation.id).execute();
      const notice = { organisation_id: organisation.id, subject_id: connection, agent_id: null, created_at: 1 };
      await tx
        .insertInto('notices')
        .values([
          { ...notice, id: '0', event: 'connection_broken', platform_id: 'demo' },
          { ...notice, id: '1', event: 'connection_settled', platform_id: null },
        ])
        .execute();
    });
    const [told] = await server.waitFor(1);
    expect(told!.type).toBe('connection_broken.opened');
  });

  test('a channel gets only the notices that its rules select', async () => {
    const hook = (name: string, more: object) => addWebhook({ name, url: `${server.url}/${name}`, ...more });
    await hook('agents', { agents: ['deploy-*'] });
    await hook('events', { events: ['agent_suspended'] });
    await hook('platforms', { platforms: ['crm'] });
    await hook('id', { agents: [agent.agentId] });
    const deploy = await organisation.agent({ name: 'deploy-eu' });
    await agent.hold(WRITE);
    await deploy.hold(WRITE);
    await server.waitFor(2);
    await pause(200);
    expect(server.seen.map(({ target }) => target).toSorted()).toEqual(['/agents', '/id']);
  });

  test('a channel for an agent gets the notices of its children, which name the parent', async () => {
    await addWebhook({ agents: ['deploy-*'] });
    const deploy = await organisation.agent({ name: 'deploy-eu' });
    await (await childOf(world, organisation, deploy, { name: 'triage' })).hold(WRITE);
    const [{ data }] = (await server.waitFor(1)) as [Came];
    expect([data.agent, data.parent]).toEqual(['triage', 'deploy-eu']);
    await (await childOf(world, organisation, agent, { name: 'deploy-us' })).hold(WRITE);
    const [, { data: other }] = (await server.waitFor(2)) as [Came, Came];
    expect([other.agent, other.parent]).toEqual(['deploy-us', 'triage']);
  });

  test('without a channel nothing is put into the outbox; nor by a transaction that is rolled back', async () => {
    const id = await agent.hold(WRITE);
    expect(await ofOrganisation('notices')).toEqual([]);
    await addWebhook();
    const undone = world.db.transaction().execute(async (tx) => {
      await tx.updateTable('approvals').set({ status: 'expired' }).where('id', '=', id).execute();
      expect(await tx.selectFrom('notices').selectAll().where('subject_id', '=', id).execute()).toHaveLength(1);
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    expect(await ofOrganisation('notices')).toEqual([]);
    expect(await ofOrganisation('notice_deliveries')).toEqual([]);
  });

  test('a channel that does not answer, redirects or sends garbage delays neither other channels nor calls', async () => {
    server.answer = () => {};
    other.answer = ({ url }, response) =>
      url === '/redirects'
        ? response.writeHead(302, { location: `${server.url}/stolen` }).end()
        : response.writeHead(204).end();
    for (let i = 0; i < 10; i++) await addWebhook({ name: `silent-${i}`, url: `${server.url}/silent-${i}` });
    await addWebhook({ name: 'redirects', url: `${other.url}/redirects` });
    await addWebhook({ name: 'garbage', url: `http://${garbage}/` });
    await addWebhook({ name: 'inward', url: 'https://169.254.169.254/latest' });
    await addWebhook({ name: 'good', url: `${other.url}/good` });
    const began = Date.now();
    for (let i = 0; i < 5; i++) await agent.hold(WRITE);
    // A silent channel is given up after ten seconds.
    expect(Date.now() - began).toBeLessThan(9_500);
    const good = () => other.seen.filter(({ target }) => target === '/good').length;
    await expect.poll(good, { timeout: 3_000, interval: 10 }).toBe(5);
    await expect.poll(async () => (await channelNamed('garbage')).status).toBe('failing');
    expect(await channelNamed('redirects')).toMatchObject({
      status: 'failing',
      last_error: 'It answered 302, a redirect; none is followed.',
    });
    expect((await channelNamed('inward')).last_error).toContain('not one that this broker may connect to');
    expect(await channelNamed('good')).toMatchObject({ status: 'active', last_error: null });
    expect(server.seen.filter(({ target }) => target === '/stolen')).toEqual([]);
  });

  test('a mail that is refused for one recipient is sent once to the others, and the channel says so until it is accepted for all', async () => {
    const to = ['ann@acme.example', 'bob@acme.example'];
    const channel = { name: 'mail', kind: 'email', host: 'localhost', port: mail.port, security: 'none', to };
    const made = await organisation.ask('POST', '/owner/channels', { ...channel, from: 'broker@acme.example' });
    expect(made.status, made.text).toBe(201);
    refused = 'bob@acme.example';
    const why = 'The mail server refused bob@acme.example; the others got it.';
    await agent.hold(WRITE);
    await expect.poll(async () => (await channelNamed('mail')).last_error, { timeout: 8_000 }).toBe(why);
    expect((await channelNamed('mail')).status).toBe('active');
    const tried = await organisation.ask('POST', `/owner/channels/${made.body.id}/test`, {});
    expect(tried.body).toMatchObject({ ok: false, detail: why });
    await pause(2_500);
    expect(mail.mails.map((one) => one.to)).toEqual([['ann@acme.example'], ['ann@acme.example']]);
    refused = '';
    await agent.hold(WRITE);
    await expect.poll(async () => (await channelNamed('mail')).last_error, { timeout: 8_000 }).toBe(null);
    expect(mail.mails.at(-1)?.to).toEqual(to);
  });

  test('a failed message is retried with the same id, not before Retry-After; 410 ends the channel', async () => {
    let answers = [503, 204];
    server.answer = (_request, response) => {
      const status = answers.shift() ?? 204;
      response.writeHead(status, status === 503 ? { 'retry-after': '2' } : {}).end('SECRET-OF-THE-CHANNEL');
    };
    const { id } = await addWebhook();
    const began = Date.now();
    await agent.hold(WRITE);
    await expect.poll(async () => (await channelNamed('hook')).last_error).toBe('It answered 503.');
    const [first, second] = await server.waitFor(2, 8_000);
    expect(Date.now() - began).toBeGreaterThan(1_900);
    expect(second!.id).toBe(first!.id);
    await expect.poll(async () => (await channelNamed('hook')).status).toBe('active');
    answers = [410];
    await agent.hold(WRITE);
    await expect.poll(async () => (await channelNamed('hook')).status).toBe('gone');
    const seen = server.seen.length;
    await agent.hold(WRITE);
    await pause(300);
    expect(server.seen).toHaveLength(seen);
    const change = { kind: 'webhook', url: `${server.url}/hook` };
    expect((await organisation.ask('POST', `/owner/channels/${id}/settings`, change)).body.status).toBe('active');
    await agent.hold(WRITE);
    await server.waitFor(seen + 1);
  }, 180_000);

  test('operators see what a channel does not accept as waiting, but not what waits for the end of quiet hours', async () => {
    // The number is of all organisations.
    await world.db.deleteFrom('notice_deliveries').execute();
    const waiting = async () => {
      const now = world.running.broker.clock();
      return (await operatorNumbers(world.db, { now, stalledBefore: 0 })).notices;
    };
    const at = (minutes: number) =>
      new Date(world.running.broker.clock() + minutes * MINUTE).toISOString().slice(11, 16);
    const quiet = await addWebhook({ name: 'quiet', quiet: { from: at(-5), to: at(60), zone: 'UTC' } });
    await agent.hold(WRITE);
    await expect.poll(() => ofOrganisation('notices')).toEqual([]);
    expect(await waiting()).toBe(0);
    await organisation.ask('DELETE', `/owner/channels/${quiet.id}`);
    server.answer = (_request, response) => response.writeHead(503, { 'retry-after': '600' }).end();
    const { id } = await addWebhook();
    await agent.hold(WRITE);
    await expect.poll(async () => (await channelNamed('hook')).last_error).toBe('It answered 503.');
    expect(await waiting()).toBe(1);
    await organisation.ask('DELETE', `/owner/channels/${id}`);
    expect(await waiting()).toBe(0);
  });

  test('messages in flight that fail together are retried after a second, as one', async () => {
    await addWebhook();
    const failing: (() => void)[] = [];
    server.answer = (_request, response) => {
      // While the first message is in flight the channel gets no other one; the others are due when it is answered.
      if (server.seen.length === 1) setTimeout(() => response.writeHead(204).end(), 1_000);
      else failing.push(() => response.writeHead(503).end());
    };
    await Promise.all([agent.hold(WRITE), agent.hold(WRITE), agent.hold(WRITE), agent.hold(WRITE), agent.hold(WRITE)]);
    await expect.poll(() => failing.length, { timeout: 5_000 }).toBe(4);
    server.answer = (_request, response) => response.writeHead(204).end();
    for (const fail of failing) fail();
    await server.waitFor(9, 4_500);
  });

  test('Retry-After is also respected when a message in flight is accepted later', async () => {
    await addWebhook();
    const inFlight: ((status: number) => void)[] = [];
    server.answer = (_request, response) => {
      const answer = (status: number) =>
        response.writeHead(status, status === 204 ? {} : { 'retry-after': '600' }).end();
      if (server.seen.length === 1) setTimeout(() => answer(204), 1_500);
      else inFlight.push(answer);
    };
    for (let at = 0; at < 7; at++) await agent.hold(WRITE);
    await expect.poll(() => inFlight.length, { timeout: 5_000 }).toBe(4);
    inFlight[0]!(429);
    await expect.poll(async () => (await channelNamed('hook')).status).toBe('failing');
    for (const answer of inFlight.slice(1)) answer(204);
    await pause(2_500);
    expect(server.seen).toHaveLength(5);
  });

  test.each([
    ['is changed', () => ({ path: 'settings', change: { kind: 'webhook', url: `${other.url}/hook` }, by: other })],
    ['accepts a test notice', () => ({ path: 'test', change: {}, by: server })],
  ])('what waits for another attempt is sent when the channel %s', async (_when, mended) => {
    server.answer = (_request, response) => response.writeHead(503, { 'retry-after': '600' }).end();
    const { id } = await addWebhook();
    const waits = [await agent.hold(WRITE)];
    await expect.poll(async () => (await channelNamed('hook')).last_error).toBe('It answered 503.');
    waits.push(await agent.hold(WRITE));
    await pause(1_500);
    expect(server.seen).toHaveLength(1);
    server.answer = (_request, response) => response.writeHead(204).end();
    const { path, change, by } = mended();
    expect((await organisation.ask('POST', `/owner/channels/${id}/${path}`, change)).status).toBe(200);
    const subjects = () => by.came().flatMap(({ type, data }) => (type === 'test' ? [] : [data.id]));
    await expect.poll(subjects, { timeout: 5_000 }).toEqual(expect.arrayContaining(waits));
  });

  test('a channel that is changed while a message is in flight is not ended by the answer to it, and gets the message', async () => {
    let answerFirst: (() => void) | undefined;
    server.answer = (_request, response) => {
      answerFirst = () => response.writeHead(410).end();
    };
    const { id } = await addWebhook();
    const waits = await agent.hold(WRITE);
    await server.waitFor(1);
    const change = { kind: 'webhook', url: `${other.url}/hook` };
    expect((await organisation.ask('POST', `/owner/channels/${id}/settings`, change)).status).toBe(200);
    answerFirst?.();
    expect((await other.waitFor(1, 8_000))[0]!.data.id).toBe(waits);
    expect((await channelNamed('hook')).status).toBe('active');
  });

  test('in quiet hours nothing is sent; pending items are sent afterwards, and decided ones are not', async () => {
    const at = (ms: number) => new Date(world.running.broker.clock() + ms).toISOString().slice(11, 16);
    await addWebhook({ quiet: { from: at(-5 * MINUTE), to: at(60 * MINUTE), zone: 'UTC' } });
    const decided = await agent.hold(WRITE);
    const waits = await agent.hold(WRITE);
    await expect.poll(async () => (await ofOrganisation('notice_deliveries')).length).toBe(2);
    await organisation.deny(decided);
    await pause(200);
    expect(server.seen).toEqual([]);
    world.clock.skewMs = 62 * MINUTE;
    const [first] = await server.waitFor(1, 5_000);
    expect(first!.data.id).toBe(waits);
    await pause(300);
    expect(server.seen).toHaveLength(1);
  });

  test('quiet hours that never end are refused; those of whole days are not', async () => {
    const quiet = { from: '09:00', to: '09:00', zone: 'UTC' };
    const channel = { kind: 'webhook', url: `${server.url}/hook`, quiet };
    const refused = await organisation.ask('POST', '/owner/channels', { name: 'hook', ...channel });
    expect([refused.status, refused.body.error]).toEqual([400, 'invalid_request']);
    expect(refused.body.detail).toContain('quiet: 09:00 to 09:00 on all days are all hours');
    const { id } = await addWebhook({ quiet: { ...quiet, days: ['sat', 'sun'] } });
    expect((await organisation.ask('POST', `/owner/channels/${id}/settings`, channel)).status).toBe(400);
    expect((await channelNamed('hook')).rules.quiet.days).toEqual(['sat', 'sun']);
  });

  test('what waits for the end of quiet hours is sent when the channel loses them', async () => {
    const at = (ms: number) => new Date(world.running.broker.clock() + ms).toISOString().slice(11, 16);
    const quiet = (minutes: number) => ({ from: at(-5 * MINUTE), to: at(minutes * MINUTE), zone: 'UTC' });
    const { id } = await addWebhook({ quiet: quiet(600) });
    const change = (more: object) =>
      organisation.ask('POST', `/owner/channels/${id}/settings`, {
        ...{ kind: 'webhook', url: `${server.url}/hook` },
        ...more,
      });
    const waits = await agent.hold(WRITE);
    await expect.poll(async () => (await ofOrganisation('notice_deliveries')).length).toBe(1);
    await change({ quiet: quiet(300) });
    await pause(1_500);
    expect(server.seen).toEqual([]);
    expect((await change({})).status).toBe(200);
    expect((await server.waitFor(1, 5_000))[0]!.data.id).toBe(waits);
  });

  test('a reminder is sent before the deadline, unless the call was decided', async () => {
    await addWebhook({ remind_minutes: 30 });
    const decided = await agent.hold(WRITE);
    const waits = await agent.hold(WRITE);
    await server.waitFor(2);
    await organisation.deny(decided);
    await server.waitFor(3);
    world.clock.skewMs = 24 * 60 * MINUTE - 29 * MINUTE;
    const told = await server.waitFor(4, 5_000);
    expect(told[3]).toMatchObject({
      type: 'call_held.reminder',
      data: { id: waits, title: 'Approval needed (reminder)' },
    });
    await pause(300);
    expect(server.seen).toHaveLength(4);
  });

  test('a reminder that is due after three days and more is retried like any other', async () => {
    await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 7 * 24 * 3600 });
    await addWebhook({ remind_minutes: 30 });
    const waits = await agent.hold(WRITE);
    await server.waitFor(1);
    const answers = [503];
    server.answer = (_request, response) => response.writeHead(answers.shift() ?? 204).end();
    world.clock.skewMs = 7 * 24 * 60 * MINUTE - 29 * MINUTE;
    const told = await server.waitFor(3, 8_000);
    expect(told.slice(1)).toMatchObject(Array(2).fill({ type: 'call_held.reminder', data: { id: waits } }));
    expect(told[2]!.id).toBe(told[1]!.id);
  });

  test('many channels of one organisation that do not answer delay another one by less than two seconds', async () => {
    server.answer = () => {};
    for (let n = 0; n < 70; n++) await addWebhook({ name: `slow-${n}`, url: `${server.url}/slow-${n}` });
    await agent.hold(WRITE);
    await server.waitFor(32, 5_000);
    const elsewhere = await world.demoOrganisation();
    const channel = { name: 'theirs', kind: 'webhook', url: `${other.url}/theirs` };
    expect((await elsewhere.ask('POST', '/owner/channels', channel)).status).toBe(201);
    const urgent = await elsewhere.agent();
    expect((await urgent.act(WRITE)).status).toBe(202);
    await other.waitFor(1, 2_000);
  });

  test('channels that are removed while their messages wait for capacity receive nothing', async () => {
    server.answer = () => {};
    for (let n = 0; n < 40; n++) await addWebhook({ name: `slow-${n}` });
    await agent.hold(WRITE);
    await server.waitFor(32, 5_000);
    await removeChannels();
    // Ends the requests of the others.
    await server.pause();
    await server.resume();
    await pause(500);
    expect(server.seen).toHaveLength(32);
  });

  test(`${MANY} notices on a channel that is down delay another one by less than two seconds`, async () => {
    server.answer = (_request, response) => response.writeHead(503).end();
    await addWebhook({ name: 'down', url: `${server.url}/down`, agents: ['triage'] });
    await addWebhook({ name: 'good', url: `${other.url}/good`, agents: ['urgent'] });
    const urgent = await organisation.agent({ name: 'urgent' });
    const id = await agent.hold(WRITE);
    const many = Array.from({ length: MANY }, () => ({
      organisation_id: organisation.id,
      id: crypto.randomUUID(),
      event: 'call_held' as const,
      subject_id: id,
      agent_id: agent.id,
      platform_id: 'demo',
      created_at: 0,
    }));
    for (let at = 0; at < many.length; at += 1_000)
      await world.db
        .insertInto('notices')
        .values(many.slice(at, at + 1_000))
        .execute();
    await expect.poll(() => countOf('notices'), { timeout: 30_000 }).toBe(0);
    expect(await countOf('notice_deliveries')).toBe(MANY + 1);
    const began = Date.now();
    await urgent.hold(WRITE);
    await expect.poll(() => other.seen.length, { timeout: 5_000, interval: 10 }).toBe(1);
    expect(Date.now() - began).toBeLessThan(scaledTimeout(2_000));
    expect(server.seen.filter(({ target }) => target === '/down').length).toBeLessThan(30);
  }, 180_000);

  test('a process that lost the lease creates no deliveries', async () => {
    await addWebhook();
    // Each attempt has another end: an end that does not change for long is taken for one that a wrong clock has set.
    const forced = { name: 'notices', holder: 'another', now: 0, until: Date.now() + 3_600_000, isFree: true };
    const fence = await takeLease(world.db, forced);
    await agent.hold(WRITE);
    await pause(1_500);
    expect(await ofOrganisation('notices')).toHaveLength(1);
    expect(server.seen).toEqual([]);
    await world.db.updateTable('leases').set({ until: 0 }).where('fence', '=', fence!).execute();
    await server.waitFor(1, 5_000);
    expect(server.seen).toHaveLength(1);
  }, 180_000);
});
