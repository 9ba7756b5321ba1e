import { decodeJwt } from 'jose';
import { describe, expect, test } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { auditIdOf } from '../world/evidence.ts';
import { type Collector, type SentSpan, startCollector } from '../world/servers/collector.ts';
import { CANARY, type Organisation, READ, startWorld, type World, WRITE } from '../world/world.ts';

const ASKED = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

type Traced = { world: World; organisation: Organisation; agent: TestAgent; collector: Collector };

async function start(
  environment: Record<string, string> = {},
  manifest: Record<string, unknown> = {},
): Promise<Traced> {
  const collector = await startCollector();
  const world = await startWorld('sqlite', {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=collector%2Dsecret',
    OTEL_TRACES_SAMPLER: 'always_on',
    ...environment,
  });
  const organisation = await world.organisation();
  await organisation.platform({ manifest });
  return { world, organisation, agent: await organisation.agent(), collector };
}

/** Returns the spans that were sent until the broker has stopped. */
async function sent({ world, collector }: Traced): Promise<SentSpan[]> {
  await world.running.stop();
  return collector.spans;
}

describe('traces', () => {
  test('a call is one trace: decide, record, forward, record; its id is in the answer, the audit row and the receipt', async () => {
    const traced = await start();
    const { agent, world, organisation, collector } = traced;
    const asked = { ...WRITE, method: 'PATCH', endpoint: '/items/secret-item', data: { title: 'a secret title' } };
    const answer = await expectStatus(200, agent.act(asked, { traceparent: ASKED }));
    const id = auditIdOf(answer);
    const { receipt } = (await agent.get(`/v1/audit/${id}/receipt`)).body;
    const { body: rows } = await organisation.ask('GET', `/owner/audit?text=${id}`);
    const spans = await sent(traced);
    const [call] = spans.filter(({ name }) => name === 'call');
    expect(call?.traceId).toBe(answer.body._meta.trace_id);
    expect(decodeJwt(receipt).trace_id).toBe(call?.traceId);
    expect(JSON.stringify(rows)).toContain(call?.traceId);
    expect(call?.attributes).toMatchObject({
      'agent_broker.audit_id': id,
      'agent_broker.result': 'allowed',
      'agent_broker.platform': 'demo',
      'http.request.method': 'PATCH',
    });
    const steps = spans.filter(({ name }) => name !== 'call');
    expect(steps.map(({ name }) => name).sort()).toEqual(['decide', 'forward', 'record', 'record']);
    for (const step of steps) expect([step.traceId, step.parentSpanId]).toEqual([call?.traceId, call?.spanId]);
    expect(steps.find(({ name }) => name === 'forward')?.attributes).toMatchObject({
      'server.address': '127.0.0.1',
      'http.response.status_code': 200,
    });
    // The client's trace context becomes only a link.
    expect(call?.links).toMatchObject([{ traceId: ASKED.slice(3, 35), spanId: ASKED.slice(36, 52) }]);
    expect(call?.traceId).not.toBe(ASKED.slice(3, 35));
    expect(world.upstream.seen.at(-1)?.headers.traceparent).toBeUndefined();
    // Neither request data nor a credential is in the traces.
    const all = collector.bodies.join('\n');
    for (const secret of [CANARY, 'secret-item', 'a secret title', 'collector-secret'])
      expect(all).not.toContain(secret);
    expect(collector.headers[0]?.['x-collector-key']).toBe('collector-secret');
    expect(collector.resources[0]).toMatchObject({ 'service.name': 'agent-broker' });
  });

  test('held and refused calls have a trace', async () => {
    const traced = await start();
    expect((await traced.agent.act(WRITE)).status).toBe(202);
    expect((await traced.agent.act({ ...READ, scope: 'demo:delete' })).status).toBe(403);
    const spans = await sent(traced);
    const stepsOf = (result: string) => {
      const call = spans.find(({ attributes }) => attributes['agent_broker.result'] === result);
      return spans.filter(({ parentSpanId }) => parentSpanId === call?.spanId).map(({ name }) => name);
    };
    expect(stepsOf('held')).toEqual(['decide', 'hold']);
    expect(stepsOf('denied')).toEqual(['decide', 'record']);
  });

  test('a platform with trace context enabled gets that of the broker, never that of the agent', async () => {
    const traced = await start({}, { trace: true });
    const { agent, world } = traced;
    const answer = await agent.act({ ...READ, headers: { traceparent: ASKED, baggage: 'a=b' } });
    const { headers } = world.upstream.seen.at(-1)!;
    expect(headers.baggage).toBeUndefined();
    expect(answer.body._meta.dropped_headers).toEqual(['baggage', 'traceparent']);
    const spans = await sent(traced);
    const forward = spans.find(({ name }) => name === 'forward');
    expect(headers.traceparent).toBe(`00-${forward?.traceId}-${forward?.spanId}-01`);
  });

  test('a client’s trace context does not determine what is sampled', async () => {
    const traced = await start({ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' });
    const answer = await traced.agent.act(READ, { traceparent: ASKED });
    expect(answer.body._meta.trace_id).toBeUndefined();
    expect(await sent(traced)).toEqual([]);
  });

  test('a hanging collector delays no call, and a stop only briefly', async () => {
    // Longer than this test may take, so that only the broker's own timeout lets it stop.
    const traced = await start({ OTEL_EXPORTER_OTLP_TIMEOUT: '3600000' });
    traced.collector.answer = () => {};
    for (let i = 0; i < 5; i++) expect((await traced.agent.act(READ)).status).toBe(200);
    await traced.world.running.stop();
    expect(traced.collector.bodies).toHaveLength(1);
  });
});

test('metrics are sent to the collector, too, as in /metrics', async () => {
  const traced = await start({ OTEL_METRICS_EXPORTER: 'otlp', OTEL_TRACES_EXPORTER: 'none' });
  expect((await traced.agent.act(READ)).body._meta.trace_id).toBeUndefined();
  await traced.world.running.stop();
  const { metrics, spans } = traced.collector;
  expect(spans).toEqual([]);
  const pointsOf = (name: string) => metrics.findLast((metric) => metric.name === name)?.points ?? [];
  expect(pointsOf('agent_broker_calls_total')).toMatchObject([{ attributes: { platform: 'demo' }, asDouble: 1 }]);
  const [total] = pointsOf('agent_broker_call_duration_seconds').filter(
    ({ attributes }) => (attributes as Record<string, string>).part === 'total',
  );
  const { count, bucketCounts, explicitBounds } = total as Record<string, number[]>;
  expect(Number(count)).toBe(1);
  expect(bucketCounts?.reduce((sum, one) => sum + Number(one), 0)).toBe(1);
  expect(bucketCounts).toHaveLength((explicitBounds?.length ?? 0) + 1);
});
