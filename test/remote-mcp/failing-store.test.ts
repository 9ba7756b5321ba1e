/** The answer to a client of /mcp when the store fails during a tool call, and what the log says. */
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { jsonPost } from '../world/agent.ts';
import { deskOf } from '../world/mcp/held.ts';
import { browserOf } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, DEMO_RULES, DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

const EVERYTHING = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
const WRITE = { platform: 'demo', scope: 'demo:write', endpoint: '/items', data: { name: 'x' } };

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
type Json = any;

describe.each(ONE_STORE)(`a store that fails during a tool call of /mcp, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ rules: ALLOW_ALL }));
  const token = shared(async () => {
    const decision = { name: 'unlucky', grants: EVERYTHING };
    return await new OAuthClient(world).tokens(browserOf(world, organisation.owner), {}, decision);
  });
  /** Collects the errors that the broker logs from here on. */
  const logged = (): Json[] => {
    const errors: Json[] = [];
    const spy = vi.spyOn(world.running.broker.log, 'error');
    spy.mockImplementation(((fields: unknown) => void errors.push(fields)) as never);
    onTestFinished(() => spy.mockRestore());
    return errors;
  };
  const rename = async (from: string, to: string) =>
    void (await sql`alter table ${sql.table(from)} rename to ${sql.table(to)}`.execute(world.db));
  // A missing table counts as a failing store on SQLite, whose outage is logged once, and not by each call.
  const code = store === 'sqlite' ? 'store_unavailable' : 'internal_error';
  const expectLogged = (errors: Json[]) => {
    if (store === 'sqlite') return;
    expect(errors).toEqual([{ err: expect.any(Error), correlationId: expect.any(String), path: '/mcp' }]);
  };
  const away = async () => {
    await rename('mcp_repeats', 'mcp_repeats_away');
    onTestFinished(() => rename('mcp_repeats_away', 'mcp_repeats'));
  };
  const call = async (data: object) => {
    const params = { name: 'write_platform', arguments: { ...WRITE, data } };
    const { status, text } = await callMcp(world.running.baseUrl, token.access_token, { method: 'tools/call', params });
    expect(status, text).toBe(200);
    return { text, result: JSON.parse(/^data: (.*)$/m.exec(text)![1]!).result as Json };
  };

  test('before the call begins: nothing is sent, the client gets an error with an id, and the log has the error under that id', async () => {
    const errors = logged();
    await away();
    const { text, result } = await call({ name: 'before' });
    expect(result, text).toMatchObject({
      isError: true,
      structuredContent: { status: 'failed', code },
    });
    expect(text).not.toMatch(/mcp_repeats|does not exist|no such table/);
    expect(world.upstream.seen).toEqual([]);
    expectLogged(errors);
    const { correlation_id } = result.structuredContent;
    expect(correlation_id).toEqual(errors[0]?.correlationId ?? expect.any(String));
    expect(result.structuredContent.next).toContain('a call that writes is made at most once');
  });

  test('after the call was made: the client gets its answer, and the log has the error', async () => {
    const errors = logged();
    world.upstream.answer = async (_, response) => {
      await away();
      response.setHeader('content-type', 'application/json').end('{}');
    };
    const { text, result } = await call({ name: 'after' });
    expect(result?.structuredContent, text).toMatchObject({ status: 'answered', upstream_status: 200 });
    expectLogged(errors);
  });

  test('a client that disconnects while its call waits is not an error: nothing is logged', async () => {
    const errors = logged();
    const careful = await world.demoOrganisation({ rules: DEMO_RULES });
    const desk = deskOf(world, careful);
    const decision = { name: 'in a hurry', grants: EVERYTHING };
    const { access_token } = await new OAuthClient(world).tokens(browserOf(world, careful.owner), {}, decision);
    for (let id = 0; id < 5; id++) {
      const gone = new AbortController();
      const params = { name: 'write_platform', arguments: desk.held() };
      const asking = fetch(`${world.running.baseUrl}/mcp`, {
        ...jsonPost(
          { jsonrpc: '2.0', id, method: 'tools/call', params },
          { accept: 'application/json, text/event-stream', authorization: `Bearer ${access_token}` },
        ),
        signal: gone.signal,
      }).then((response) => response.text());
      const left = expect(asking).rejects.toThrow();
      const approval = await desk.waited('in a hurry');
      gone.abort();
      await left;
      await desk.leftAlone(approval);
      await desk.decide(approval, 'deny');
    }
    expect(errors).toEqual([]);
  });
});
