/** Measures metrics and traces alone: all of their work for a call, without the rest of the call. */
import { CallWatch, NO_TRACING, type Telemetry, type Tracing } from '../broker/telemetry/call-watch.ts';
import { makeMetrics, NO_METRICS } from '../broker/telemetry/metrics.ts';
import { startOpenTelemetry } from '../broker/telemetry/open-telemetry.ts';

const CALLS = 40_000;

/** CPU microseconds per call for one kind of instrument, one value per round. */
export type InstrumentCost = { name: string; micros: number[] };

/** Measures three kinds in alternating rounds in this process. The first kind has no instruments: its cost is that of the loop. */
export async function measureInstruments(rounds: number): Promise<InstrumentCost[]> {
  const tracing = onePercent();
  const kinds: [name: string, telemetry: Telemetry][] = [
    ['nothing', { metrics: NO_METRICS, tracing: NO_TRACING }],
    ['metrics', { metrics: makeMetrics(), tracing: NO_TRACING }],
    ['metrics and 1 % of traces', { metrics: makeMetrics(), tracing }],
  ];
  for (const [, telemetry] of kinds) await callMany(telemetry);
  const found = kinds.map(([name]): InstrumentCost => ({ name, micros: [] }));
  for (let round = 0; round < rounds; round++)
    for (const [at, [, telemetry]] of kinds.entries()) found[at]?.micros.push(await callMany(telemetry));
  await tracing.stop();
  return found;
}

async function callMany(telemetry: Telemetry): Promise<number> {
  const before = process.cpuUsage();
  for (let made = 0; made < CALLS; made++) await call(telemetry);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

const VERDICT = { verdict: { kind: 'allow', reason: 'allowed_by_policy' } };
const ROW = { kind: 'action', result: 'allowed', reason: 'allowed_by_policy', platform_id: 'bench' };
const ATTRIBUTES = { 'http.request.method': 'PATCH', 'server.address': '127.0.0.1', 'server.port': 8080 };

/** Performs the instrument work of a write whose audit rows are each in a group of their own: no other call has more. */
async function call(telemetry: Telemetry): Promise<void> {
  const { metrics } = telemetry;
  const watch = new CallWatch(telemetry, undefined);
  metrics.platform('bench', 'bench');
  watch.decide(() => VERDICT);
  await watch.intend(async (stored) => {
    metrics.auditGroup(1, 1, true);
    stored();
    const { ms, step } = await watch.forward(
      async () => {},
      () => ATTRIBUTES,
    );
    metrics.upstream('bench', ms, undefined);
    step?.end();
    await watch.record(async () => metrics.auditGroup(1, 1, true));
    metrics.recorded(ROW);
  });
  watch.end(() => ATTRIBUTES);
}

/** Spans are serialised and discarded: a collector in this process would add to the measured CPU time. */
function onePercent(): Tracing {
  return startOpenTelemetry({
    traces: new URL('http://127.0.0.1/v1/traces'),
    metrics: undefined,
    headers: {},
    timeoutMs: 10_000,
    encoding: 'protobuf',
    ratio: 0.01,
    metricsIntervalMs: 60_000,
    attributes: { 'service.name': 'bench' },
    version: '0',
    outbound: {
      send: async () => ({ kind: 'answer', status: 200, headers: {}, body: Buffer.alloc(0) }),
      close: async () => {},
    } as never,
    watch: { failed: () => {}, worked: () => {} },
    instruments: undefined,
  });
}
