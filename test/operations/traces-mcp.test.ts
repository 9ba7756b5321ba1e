/** Trace context over MCP, in `_meta` of requests to the broker and of requests to a server (SEP-414). */
import { decodeJwt } from 'jose';
import { expect, test } from 'vitest';
import { connected, SEARCH } from '../upstream-mcp/connected.ts';
import { expectStatus, jsonPost, send } from '../world/agent.ts';
import { callTool, shakeHands, startMcp, writeProfile } from '../world/mcp/mcp.ts';
import { browserOf } from '../world/mcp/person.ts';
import { startMcpServer } from '../world/mcp/server.ts';
import { OAuthClient } from '../world/oauth-client.ts';
import { startCollector } from '../world/servers/collector.ts';
import { READ, startWorld } from '../world/world.ts';

const ASKED = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00';

test('a server with trace context enabled gets it in `_meta`, and the attestation has the same trace id', async () => {
  const [collector, mcp] = [await startCollector(), await startMcpServer()];
  const world = await startWorld('sqlite', {
    AGENT_BROKER_ALLOW_PRIVATE: mcp.address,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_TRACES_SAMPLER: 'always_on',
  });
  const { agent } = await connected(world, mcp, { trace: true, attestation: 'meta' });
  await expectStatus(200, agent.act(SEARCH, { traceparent: ASKED }));
  const { params } = mcp.seen.find(({ rpc }) => rpc === 'tools/call')!;
  await world.running.stop();
  const call = collector.spans.find(({ name }) => name === 'call')!;
  const forward = collector.spans.find(({ name }) => name === 'forward')!;
  expect(params._meta.traceparent).toBe(`00-${forward.traceId}-${forward.spanId}-01`);
  expect(decodeJwt(params._meta['ai.svc/attestation']).trace_id).toBe(call.traceId);
});

test('the trace context of a request over stdio becomes a link, and an invalid one is ignored', async () => {
  const collector = await startCollector();
  const world = await startWorld('sqlite', {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_TRACES_SAMPLER: 'always_on',
  });
  const agent = await (await world.demoOrganisation()).agent();
  const stdio = startMcp(writeProfile(agent));
  await shakeHands(stdio);
  const { platform, endpoint, scope } = READ;
  for (const traceparent of [ASKED, 'no\r\nx-header: 1']) {
    const answer = await callTool(stdio, 'read_platform', { platform, endpoint, scope }, { _meta: { traceparent } });
    expect(answer.isError, JSON.stringify(answer)).not.toBe(true);
  }
  await world.running.stop();
  const calls = collector.spans.filter(({ name }) => name === 'call');
  expect(calls.map(({ links }) => links.map(({ traceId }) => traceId))).toEqual([[ASKED.slice(3, 35)], []]);
});

test('the trace context of a request to /mcp becomes a link of its calls', async () => {
  const collector = await startCollector();
  const world = await startWorld('sqlite', {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_TRACES_SAMPLER: 'always_on',
  });
  const organisation = await world.demoOrganisation();
  const grants = [{ platformId: 'demo', scopes: ['demo:read'] }];
  const { access_token } = await new OAuthClient(world).tokens(
    browserOf(world, organisation.owner),
    {},
    { name: 'traced', grants },
  );
  const { platform, endpoint, scope } = READ;
  const params = { name: 'read_platform', arguments: { platform, endpoint, scope }, _meta: { traceparent: ASKED } };
  const answer = await send(
    `${world.running.baseUrl}/mcp`,
    jsonPost(
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
      { accept: 'application/json, text/event-stream', authorization: `Bearer ${access_token}` },
    ),
  );
  expect(answer.status, answer.text).toBe(200);
  await world.running.stop();
  const call = collector.spans.find(({ name }) => name === 'call');
  expect(call?.links, answer.text).toMatchObject([{ traceId: ASKED.slice(3, 35), spanId: ASKED.slice(36, 52) }]);
});
