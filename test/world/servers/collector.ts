/** An OpenTelemetry collector on loopback: accepts OTLP as JSON, and stores it. */
import { createServer, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listenOnLoopback } from '../listen.ts';

type Value = { stringValue?: string; intValue?: number | string; doubleValue?: number };
type Attribute = { key: string; value: Value };

export type SentSpan = {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  kind: number;
  links: { traceId: string; spanId: string }[];
  attributes: Record<string, string | number>;
};
export type SentMetric = { name: string; points: Record<string, unknown>[] };

export type Collector = {
  url: string;
  spans: SentSpan[];
  metrics: SentMetric[];
  resources: Record<string, string | number>[];
  /** All received bodies. */
  bodies: string[];
  headers: NodeJS.Dict<string | string[]>[];
  /** Overrides the answer. */
  answer: ((response: ServerResponse) => void) | undefined;
};

const attributesOf = (list: readonly Attribute[] = []): Record<string, string | number> =>
  Object.fromEntries(
    list.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue ?? value.doubleValue)]),
  );

/** Starts the collector; it ends with the test file. */
export async function startCollector(): Promise<Collector> {
  const server = createServer(async (request, response) => {
    const body = await text(request);
    collector.bodies.push(body);
    collector.headers.push(request.headers);
    if (collector.answer) return collector.answer(response);
    if (request.headers['content-type'] === 'application/json') take(collector, JSON.parse(body));
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  const port = await listenOnLoopback(server);
  const collector: Collector = {
    url: `http://127.0.0.1:${port}`,
    spans: [],
    metrics: [],
    resources: [],
    bodies: [],
    headers: [],
    answer: undefined,
  };
  return collector;
}

// biome-ignore lint/suspicious/noExplicitAny: what came is looked at by the tests.
function take(collector: Collector, sent: any): void {
  for (const { resource, scopeSpans } of sent.resourceSpans ?? []) {
    collector.resources.push(attributesOf(resource.attributes));
    for (const span of scopeSpans.flatMap((scope: { spans: unknown[] }) => scope.spans))
      collector.spans.push({ ...span, links: span.links ?? [], attributes: attributesOf(span.attributes) });
  }
  for (const { scopeMetrics } of sent.resourceMetrics ?? [])
    for (const metric of scopeMetrics.flatMap((scope: { metrics: unknown[] }) => scope.metrics))
      collector.metrics.push({
        name: metric.name,
        points: (metric.sum ?? metric.gauge ?? metric.histogram).dataPoints.map(
          (point: { attributes: Attribute[] }) => ({ ...point, attributes: attributesOf(point.attributes) }),
        ),
      });
}
