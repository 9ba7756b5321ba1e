/** Sessions at MCP servers when the broker stops, with servers that do not answer. */
import { expect, test } from 'vitest';
import type { Credential } from '../../broker/calls/credentials.ts';
import { mcpSessions } from '../../broker/calls/mcp/sessions.ts';

test('ending sessions does not wait for servers that do not answer, and ends each session once', async () => {
  const sessions = mcpSessions();
  const credential = {} as Credential;
  const server = 'https://tools.example/mcp';
  const ended: string[] = [];
  const keep = (id: string, answers: boolean) =>
    sessions.keep(
      credential,
      { agentId: `agent-${id}`, server },
      { era: 'handshake', version: '2025-11-25', id, tasks: false },
      () => () => {
        ended.push(id);
        return answers ? Promise.resolve() : new Promise(() => {});
      },
    );
  keep('answers', true);
  for (let i = 0; i < 60; i++) keep(`silent-${i}`, false);
  await sessions.end();
  // 50 requests at a time: the others are not sent once the time is over.
  expect(ended).toHaveLength(50);
  expect(new Set(ended).size).toBe(50);
  await sessions.end();
  expect(ended).toHaveLength(50);
});

test('servers without session ids are asked nothing', async () => {
  const sessions = mcpSessions();
  const server = 'https://tools.example/mcp';
  const unexpected = () => () => Promise.reject(new Error('nothing to end'));
  sessions.keep({} as Credential, { agentId: 'a', server }, { era: 'stateless' }, unexpected);
  sessions.keep(
    {} as Credential,
    { agentId: 'b', server },
    { era: 'handshake', version: '2025-11-25', id: undefined, tasks: false },
    unexpected,
  );
  await sessions.end();
});
