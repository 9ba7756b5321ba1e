/** An agent that has no information except from its tools: its call is held, approved with a passkey, and made. */
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { BIN } from '../world/checkout.ts';
import { BARE, writeProfile } from '../world/mcp/mcp.ts';
import { approveWith, enrol } from '../world/passkeys.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

// biome-ignore lint/suspicious/noExplicitAny: a model reads whatever comes.
type Facts = any;

describe.each(ONE_STORE)(`an agent over MCP on %s${postgresNote}`, (store) => {
  test('an agent reads, is refused, corrects its call, has it held, waits, and gets the result after an approval with a passkey', async () => {
    const world = await startWorld(store);
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    const passkey = await enrol(world, organisation);
    const client = new Client({ name: 'loop', version: '1' }, { capabilities: {} });
    const args = [BIN, 'mcp', '--profile', writeProfile(agent), '--wait', '1'];
    await client.connect(new StdioClientTransport({ command: process.execPath, args, env: BARE }));
    onTestFinished(() => client.close());
    const told: string[] = [];
    const use = async (name: string, given: Record<string, unknown>): Promise<Facts> => {
      const answer = await client.callTool(
        { name, arguments: given },
        { onprogress: ({ message }) => told.push(message!) },
      );
      return answer.structuredContent;
    };

    // The agent's permissions are part of the tool descriptions.
    const [, platform, scopes] = await vi.waitUntil(
      async () => /^- (\w+): (.*)$/m.exec((await client.listTools()).tools[0]!.description!),
      { timeout: 15_000, interval: 50 },
    );
    expect([platform, scopes]).toEqual(['demo', 'demo:delete, demo:read, demo:write (may wait)']);

    const read = await use('read_platform', { platform, scope: 'demo:read', endpoint: '/items?state=open' });
    expect(read).toMatchObject({ status: 'answered', data: { target: '/v1/items?state=open' } });

    const wrong = await use('write_platform', {
      platform,
      scope: 'demo:read',
      endpoint: '/items',
      data: { title: 'x' },
    });
    expect(wrong).toMatchObject({ status: 'refused', code: 'endpoint_scope_mismatch' });
    const [scope] = /demo:write/.exec(wrong.detail)!;

    const write = { platform, scope, endpoint: '/items', data: { title: 'x' }, reason: 'The person asked for it.' };
    const held = await use('write_platform', write);
    expect(held.status).toBe('pending_approval');
    expect(told.at(-1)).toContain(held.approval_url);

    // The person opens the link, and uses their passkey.
    await expectStatus(200, approveWith(world, held.approval_url.split('/').at(-1), passkey));

    const done = await use('check_approval', { approval_id: held.approval_id });
    expect(done).toMatchObject({ status: 'answered', upstream_status: 200, data: { method: 'POST' } });
    expect(world.upstream.seen.filter(({ method }) => method === 'POST')).toHaveLength(1);
    await expectStatus(200, agent.get(`/v1/audit/${done.audit_id}/receipt`));

    const next = await use('write_platform', {
      platform,
      scope,
      endpoint: '/items/1',
      method: 'PATCH',
      data: { state: 'done' },
    });
    expect(next).toMatchObject({ status: 'answered', data: { method: 'PATCH', target: '/v1/items/1' } });
    const gone = await use('delete_platform', { platform, scope: 'demo:delete', endpoint: '/items/1' });
    expect(gone).toMatchObject({ status: 'answered', data: { method: 'DELETE' } });
  }, 180_000);
});
