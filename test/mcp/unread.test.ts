/** Answers of tools when the state of something that was begun before cannot be read: they do not claim that nothing was done. */
import { expect, test } from 'vitest';
import { BrokerError } from '../../mcp/client/broker-error.ts';
import { hashOf, repeatsInMemory } from '../../mcp/tools/repeats.ts';
import { runTool } from '../../mcp/tools/run-tool.ts';
import { getTask } from '../../mcp/tools/tasks.ts';
import type { ToolHost } from '../../mcp/tools/tool-host.ts';

const WRITE = { platform: 'demo', endpoint: '/items', scope: 'demo:write', data: { a: 1 } };
const ID = '8a0e3d0e-52d9-4a46-8e9e-2b9a1a8c1f11';
const request = { takesTasks: false, opensLinks: 'no', progress: async () => {}, signal: new AbortController().signal };

/** Returns the text of the answer to a tool call while the broker fails with `error`, after one identical write was held. */
async function answerTo(name: string, given: object, error: BrokerError): Promise<string> {
  const repeats = repeatsInMemory();
  const hash = hashOf({ ...WRITE, method: 'POST' }, undefined);
  const { key } = await repeats.begin(hash, undefined);
  await repeats.held(hash, key, ID);
  const failing = async () => ({ ok: false, error });
  const requestAccess = async () => ({ ok: true, value: { requestToken: 'token' } });
  const client = { approval: failing, accessRequest: failing, requestAccess };
  const host = { client, repeats, waitMs: 0, permissions: { refreshSoon: () => {} } } as unknown as ToolHost;
  const handed = await runTool(host, request as never, name, given);
  return handed?.kind === 'answer' ? String(handed.answer.structuredContent.next) : '';
}

const unreachable = new BrokerError('unreachable', 'The broker does not answer (ECONNREFUSED).');
const failed = new BrokerError('store_unavailable', 'The store is not available.', { status: 503 });

test.each([
  ['the identical call', 'write_platform', WRITE, 'it may have been made'],
  ['check_approval', 'check_approval', { approval_id: ID }, 'it may have been made'],
  ['request_access', 'request_access', { platform: 'demo' }, 'The owners were asked'],
])('%s', async (_what, name, given, words) => {
  for (const error of [unreachable, failed]) {
    const next = await answerTo(name, given, error);
    expect(next).toContain(words);
    expect(next).not.toContain('Nothing was done');
    expect(next).toContain('Try again');
  }
});

test('request_access whose own answer was lost', async () => {
  const asking = async (error: BrokerError) => {
    const client = { requestAccess: async () => ({ ok: false, error }) };
    const host = { client, waitMs: 0, permissions: { refreshSoon: () => {} } } as unknown as ToolHost;
    const handed = await runTool(host, request as never, 'request_access', { platform: 'demo' });
    return handed?.kind === 'answer' ? String(handed.answer.structuredContent.next) : '';
  };
  const lost = await asking(new BrokerError('unreachable', 'The connection was lost.', { mayHaveActed: true }));
  expect(lost).toContain('may have been asked');
  expect(lost).not.toContain('Nothing was done');
  expect(await asking(unreachable)).toContain('Nothing was done');
});

test('a task', async () => {
  const error = new BrokerError('forbidden', 'No.', { status: 403 });
  const client = { approval: async () => ({ ok: false, error }) };
  const told = JSON.stringify(await getTask({ client } as unknown as ToolHost, ID));
  expect(told).toContain('it may have been made');
  expect(told).not.toContain('Nothing was done');
});
