/** Held calls of remote MCP clients: a link that the client opens, an open request, an id; what ends a wait, and what survives a disconnection. */
import { Client, type ClientCapabilities, UrlElicitationRequiredError } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { UrlElicitationRequiredError as FirstLinkError } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { purgeMcpRepeats } from '../../broker/store/mcp-repeats.ts';
import { send } from '../world/agent.ts';
import { deskOf } from '../world/mcp/held.ts';
import { browserOf, ClientMemory, connectClient, connectFirstClient } from '../world/mcp/person.ts';
import { callMcp } from '../world/oauth-client.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES, DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
type Json = any;
type AnyClient = Pick<Client, 'callTool' | 'close'>;
type Connected = { client: AnyClient; memory: ClientMemory; name: string };
type Connect = (capabilities?: ClientCapabilities, memory?: ClientMemory, calledItself?: string) => Promise<Connected>;

/** The message for a client while a call waits. */
const NEWS = 'Waiting for a person to approve this call, which would send a POST to /items with 1 field';
const OPENS_LINKS = { elicitation: { url: {} } };

describe.each(ONE_STORE)(`a remote client whose call is held, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  const desk = shared(() => deskOf(world, organisation));

  let names = 0;
  const decisionFor = (name: string) => ({
    name,
    grants: [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }],
  });
  const structured = (answer: Json): Json => answer.structuredContent;
  const write = (client: AnyClient, args: object, options: object = {}) =>
    client.callTool({ name: 'write_platform', arguments: { ...args } }, options as never);
  const check = async (client: AnyClient, id: string) =>
    structured(await client.callTool({ name: 'check_approval', arguments: { approval_id: id } }));

  /** Connects another client with the tokens in `memory`, if there are any, and so as the same agent. */
  const second =
    (mode: 'legacy' | 'modern'): Connect =>
    async (capabilities = {}, memory = new ClientMemory(), calledItself = 'second') => {
      const versionNegotiation = { mode: mode === 'modern' ? { pin: '2026-07-28' } : 'legacy' } as const;
      const client = new Client({ name: calledItself, version: '1' }, { capabilities, versionNegotiation });
      const name = memory.name ?? `agent-${store}-${++names}`;
      memory.name = name;
      await connectClient(world, browserOf(world, organisation.owner), { client, memory, decision: decisionFor(name) });
      onTestFinished(() => client.close());
      return { client, memory, name };
    };
  const first: Connect = async (capabilities = {}, memory = new ClientMemory(), calledItself = 'first') => {
    const client = new FirstClient({ name: calledItself, version: '1' }, { capabilities: capabilities as Json });
    const name = memory.name ?? `agent-${store}-${++names}`;
    memory.name = name;
    const browser = browserOf(world, organisation.owner);
    await connectFirstClient(world, browser, { client, memory, decision: decisionFor(name) });
    onTestFinished(() => client.close());
    // The options are the third argument, after the result schema.
    const callTool = (params: Json, options?: Json) => client.callTool(params, undefined, options);
    const close = () => client.close();
    return { client: { callTool, close } as AnyClient, memory, name };
  };
  const HANDSHAKE = [
    ['the first generation', first],
    ['the second generation, shaking hands', second('legacy')],
  ] as const;
  const ALL = [...HANDSHAKE, ['the second generation, stateless', second('modern')]] as const;

  describe.each(ALL)('of %s', (_name, connect) => {
    test('waits with the request open, gets the link, and the platform’s answer after the approval', async () => {
      const { client, name } = await connect();
      const args = desk.held();
      const told: Json[] = [];
      const answering = write(client, args, { onprogress: (one: Json) => told.push(one) });
      const id = await desk.waited(name);
      expect(desk.sentFor(args)).toBe(0);
      await desk.decide(id, 'approve', { note: 'Only this once.' });
      expect(structured(await answering)).toMatchObject({
        status: 'answered',
        approval_id: id,
        note: 'Only this once.',
      });
      expect(told[0]).toMatchObject({ progress: 0, message: `${NEWS}: ${desk.urlOf(id)}` });
      expect(desk.sentFor(args)).toBe(1);
    });

    test('a cancelled call ends the wait; the call stays held, and its result can be read later', async () => {
      const { client, name } = await connect();
      const args = desk.held();
      const cancelling = new AbortController();
      const answering = write(client, args, { signal: cancelling.signal });
      const id = await desk.waited(name);
      cancelling.abort('The person pressed escape.');
      await expect(answering).rejects.toThrow(/escape/);
      await desk.leftAlone(id);
      expect(await desk.pending(name)).toEqual([id]);
      await desk.decide(id, 'approve');
      expect(await check(client, id)).toMatchObject({ status: 'answered', approval_id: id });
      expect(desk.sentFor(args)).toBe(1);
    });

    test('cancelling check_approval ends its wait', async () => {
      const { client, name } = await connect();
      const cancelling = new AbortController();
      const answering = write(client, desk.held(), { signal: cancelling.signal });
      const id = await desk.waited(name);
      cancelling.abort();
      await expect(answering).rejects.toThrow();
      await desk.leftAlone(id);
      const again = new AbortController();
      const checking = client.callTool({ name: 'check_approval', arguments: { approval_id: id } }, {
        signal: again.signal,
      } as never);
      await desk.waited(name);
      again.abort();
      await expect(checking).rejects.toThrow();
      await desk.leftAlone(id);
      expect(await desk.pending(name)).toEqual([id]);
    });

    test('after losing its connection, finds the same approval by the identical call, from another process', async () => {
      const one = await connect();
      const args = desk.held();
      void write(one.client, { ...args, reason: 'First words.' }).catch(() => {});
      const id = await desk.waited(one.name);
      await one.client.close();
      await desk.leftAlone(id);
      const two = await connect({}, one.memory);
      const answering = write(two.client, { ...args, reason: 'Other words.' });
      expect(await desk.waited(one.name)).toBe(id);
      expect(await desk.pending(one.name)).toEqual([id]);
      await desk.decide(id, 'approve');
      expect(structured(await answering)).toMatchObject({ status: 'answered', approval_id: id });
      expect(desk.sentFor(args)).toBe(1);
    });
  });

  describe.each(HANDSHAKE)('of %s, that opens links', (_name, connect) => {
    const asked = async (work: Promise<unknown>): Promise<FirstLinkError | UrlElicitationRequiredError> => {
      const error = await work.then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (error instanceof FirstLinkError || error instanceof UrlElicitationRequiredError) return error;
      throw new Error(`expected to be asked to open a link: ${error}`);
    };
    const linkOf = (error: FirstLinkError | UrlElicitationRequiredError) => {
      expect([error.code, error.elicitations.length]).toEqual([-32042, 1]);
      const [{ mode, url, elicitationId }] = error.elicitations as [Json];
      const id = desk.idIn(url);
      expect([mode, elicitationId]).toEqual(['url', id]);
      // The message is sufficient for a client that does not support this error and shows its text.
      expect(error.message).toContain(url);
      expect(error.message).toMatch(/the identical call again: it is not submitted twice/);
      return id;
    };

    test('gets the approval’s link as an error, and waits for the decision when it repeats the call', async () => {
      const { client, name } = await connect(OPENS_LINKS);
      const args = desk.held();
      const id = linkOf(await asked(write(client, args)));
      expect(await desk.pending(name)).toEqual([id]);
      const answering = write(client, args);
      expect(await desk.waited(name)).toBe(id);
      await desk.decide(id, 'approve');
      expect(structured(await answering)).toMatchObject({ status: 'answered', approval_id: id });
      expect(desk.sentFor(args)).toBe(1);
      // The result was delivered: the next call is a new one, with a link of its own.
      expect(linkOf(await asked(write(client, args)))).not.toBe(id);
    });

    test('a client known to treat that error as a failed tool waits with the request open instead', async () => {
      const { client, name } = await connect(OPENS_LINKS, undefined, 'codex-mcp-client');
      const args = desk.held();
      const answering = write(client, args);
      const id = await desk.waited(name);
      await desk.decide(id, 'approve');
      expect(structured(await answering)).toMatchObject({ status: 'answered', approval_id: id });
    });

    test('a decision made while the link is open is returned immediately, including a denial and an expiry', async () => {
      const { client } = await connect(OPENS_LINKS);
      const [approved, denied, late] = [desk.held(), desk.held(), desk.held()];
      await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 300 });
      const ids = [];
      for (const args of [approved, denied, late]) ids.push(linkOf(await asked(write(client, args))));
      await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 86_400 });
      await desk.decide(ids[0]!, 'approve');
      await desk.decide(ids[1]!, 'deny', { note: 'Not today.' });
      expect(structured(await write(client, approved))).toMatchObject({ status: 'answered', approval_id: ids[0] });
      expect(structured(await write(client, denied))).toMatchObject({ status: 'denied', note: 'Not today.' });
      world.clock.skewMs = 301_000;
      expect(structured(await write(client, late))).toMatchObject({ status: 'expired', approval_id: ids[2] });
      expect([approved, denied, late].map(desk.sentFor)).toEqual([1, 0, 0]);
    });

    test('after a decline the call stays held, and is found by its id and by the identical call', async () => {
      const one = await connect(OPENS_LINKS);
      const args = desk.held();
      const id = linkOf(await asked(write(one.client, args)));
      await one.client.close();
      const two = await connect(OPENS_LINKS, one.memory);
      const answering = write(two.client, args);
      expect(await desk.waited(one.name)).toBe(id);
      await desk.decide(id, 'approve');
      await answering;
      expect(await check(two.client, id)).toMatchObject({ status: 'answered' });
      expect(desk.sentFor(args)).toBe(1);
    });
  });

  describe('of the second generation, stateless, that opens links', () => {
    const connect = second('modern');
    /** Connects a client. `open`: what the person does with the link. */
    async function opening(open: (id: string) => Promise<'accept' | 'decline' | 'cancel'>, memory?: ClientMemory) {
      const connected = await connect(OPENS_LINKS, memory);
      const shown: string[] = [];
      (connected.client as unknown as Client).setRequestHandler('elicitation/create', async ({ params }: Json) => {
        expect(params.mode).toBe('url');
        const id = desk.idIn(params.url);
        shown.push(id);
        return { action: await open(id) };
      });
      return { ...connected, shown };
    }

    test('gets the approval’s link as required input, and the platform’s answer when it sends the response', async () => {
      const { client, shown, name } = await opening(async () => 'accept');
      const args = desk.held();
      const answering = write(client, args);
      const id = await desk.waited(name);
      expect(shown).toEqual([id]);
      await desk.decide(id, 'approve');
      expect(structured(await answering)).toMatchObject({ status: 'answered', approval_id: id });
      expect(desk.sentFor(args)).toBe(1);
    });

    test('a decision made while the link is open is returned immediately, including a denial and an expiry', async () => {
      for (const [what, status] of [
        ['approve', 'answered'],
        ['deny', 'denied'],
        ['wait', 'expired'],
      ] as const) {
        await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 300 });
        const { client } = await opening(async (id) => {
          if (what === 'wait') world.clock.skewMs = 301_000;
          else await desk.decide(id, what);
          return 'accept';
        });
        const args = desk.held();
        expect(structured(await write(client, args)).status).toBe(status);
        expect(desk.sentFor(args)).toBe(what === 'approve' ? 1 : 0);
      }
      world.clock.skewMs = 0;
      await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 86_400 });
    });

    test.each(['decline', 'cancel'] as const)(
      'after the person’s %s the call stays held, and the identical call asks for the same link again',
      async (action) => {
        let answer: 'accept' | typeof action = action;
        const { client, shown, name, memory } = await opening(async () => {
          // A refusal within 2 seconds counts as a program's, not a person's (mcp/tools/hold.ts).
          await new Promise((later) => setTimeout(later, 2_100));
          return answer;
        });
        const args = desk.held();
        const pending = structured(await write(client, args));
        const { approval_id: id } = pending;
        expect(pending).toMatchObject({ status: 'pending_approval', approval_url: desk.urlOf(id) });
        expect(pending.next).toMatch(/Do not submit the call again.*check_approval/s);
        expect(pending.detail).toContain(' It would send a POST to /items with 1 field. ');
        await client.close();
        answer = 'accept';
        const again = await opening(async () => 'accept', memory);
        const answering = write(again.client, args);
        expect(await desk.waited(name)).toBe(id);
        expect([...shown, ...again.shown]).toEqual([id, id]);
        await desk.decide(id, 'approve');
        expect(structured(await answering)).toMatchObject({ status: 'answered', approval_id: id });
        expect(desk.sentFor(args)).toBe(1);
      },
    );

    test('after a decline that is too fast for a person, waits with the request open', async () => {
      const { client, name } = await opening(async () => 'decline');
      const args = desk.held();
      const answering = write(client, args);
      const id = await desk.waited(name);
      await desk.decide(id, 'approve');
      expect(structured(await answering)).toMatchObject({ status: 'answered', approval_id: id });
      expect(desk.sentFor(args)).toBe(1);
    });

    test('after cancelling while the link is open, the call stays held', async () => {
      const cancelling = new AbortController();
      const { client, name } = await opening(async () => {
        cancelling.abort('Escape.');
        return 'cancel';
      });
      await expect(write(client, desk.held(), { signal: cancelling.signal })).rejects.toThrow();
      const [id] = await desk.pending(name);
      await desk.leftAlone(id!);
      await desk.decide(id!, 'deny');
      expect((await check(client, id!)).status).toBe('denied');
    });
  });

  test('is found by the identical call for as long as the organisation’s approvals last', async () => {
    const weekSeconds = 7 * 24 * 3600;
    await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: weekSeconds });
    const { client } = await first(OPENS_LINKS);
    const args = desk.held();
    const asked = (work: Promise<unknown>) =>
      work.then(
        () => undefined,
        ({ elicitations }) => elicitations[0].url,
      );
    const id = desk.idIn(await asked(write(client, args)));
    await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 86_400 });
    // Almost a week later for the background jobs only: the access token would have expired.
    const { broker } = world.running;
    await purgeMcpRepeats(broker.store.db, broker.clock() + weekSeconds * 1000 - 1_000);
    await desk.decide(id, 'approve');
    expect(structured(await write(client, args))).toMatchObject({ status: 'answered', approval_id: id });
  });

  test.each(ALL)('of %s that supports only forms gets no form', async (_name, connect) => {
    const { client, name } = await connect({ elicitation: { form: {} } });
    const answering = write(client, desk.held());
    const id = await desk.waited(name);
    await desk.decide(id, 'deny');
    expect(structured(await answering)).toMatchObject({ status: 'denied', approval_id: id });
  });

  test('cancelling a request does not affect another client of the same agent with the same request id', async () => {
    const one = await first();
    const two = await first({}, one.memory);
    const args = desk.held();
    const cancelling = new AbortController();
    const given = write(one.client, args, { signal: cancelling.signal });
    const kept = write(two.client, args);
    const id = await desk.waited(one.name);
    const { changes } = world.running.services;
    await expect.poll(() => changes.waiting(id), { timeout: 15_000 }).toBe(2);
    cancelling.abort();
    await expect(given).rejects.toThrow();
    await expect.poll(() => changes.waiting(id), { timeout: 15_000 }).toBe(1);
    await desk.decide(id, 'approve');
    expect(structured(await kept)).toMatchObject({ status: 'answered', approval_id: id });
    expect(desk.sentFor(args)).toBe(1);
  });

  test('has a stateless session id that encodes its capabilities: GET and DELETE of sessions are not supported', async () => {
    const { memory } = await first();
    const { baseUrl } = world.running;
    const token = memory.saved!.access_token;
    const greet = async (capabilities: object) => {
      const clientInfo = { name: 'raw', version: '1' };
      const params = { protocolVersion: '2025-11-25', capabilities, clientInfo };
      return (await callMcp(baseUrl, token, { method: 'initialize', params })).headers.get('mcp-session-id')!;
    };
    const [plain, links] = [await greet({}), await greet(OPENS_LINKS)];
    expect(plain).toMatch(/^[\x21-\x7e]+$/);
    expect(await greet({})).not.toBe(plain);
    const message = { method: 'tools/call', params: { name: 'write_platform', arguments: desk.held() } };
    const answer = await callMcp(baseUrl, token, message, { 'mcp-session-id': links });
    expect(answer.text).toContain('-32042');
    for (const method of ['GET', 'DELETE']) {
      const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream', 'mcp-session-id': plain };
      expect([method, (await send(`${baseUrl}/mcp`, { method, headers })).status]).toEqual([method, 405]);
    }
  });
});
