/** Exposes the Prometheus registry as a producer of OpenTelemetry metrics, so that exported metrics equal those of /metrics. */
import { type HrTime, ValueType } from '@opentelemetry/api';
import { hrTime, millisToHrTime } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import type { Instruments } from './instruments.ts';

type Read = Awaited<ReturnType<Instruments['registry']['getMetricsAsJSON']>>[number];
type Labels = Record<string, string | number>;

export function registryProducer(
  { registry }: Pick<Instruments, 'registry'>,
  about: { resource: Resource; version: string },
): MetricProducer {
  const startTime = millisToHrTime(Math.round(performance.timeOrigin));
  return {
    collect: async () => {
      const endTime = hrTime();
      const read = await registry.getMetricsAsJSON();
      const metrics = read.flatMap((metric) => dataOf(metric, startTime, endTime) ?? []);
      const scope = { name: 'agent-broker', version: about.version };
      return { resourceMetrics: { resource: about.resource, scopeMetrics: [{ scope, metrics }] }, errors: [] };
    },
  };
}

/** Undefined for an unsupported metric type, or without a value. */
function dataOf(metric: Read, startTime: HrTime, endTime: HrTime): MetricData | undefined {
  const base = {
    descriptor: { name: metric.name, description: metric.help, unit: '', valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const point = <T>(attributes: Labels, value: T): DataPoint<T> => ({ startTime, endTime, attributes, value });
  // Unavailable readings (NaN) are not exported.
  const numbers = metric.values.filter(({ value }) => !Number.isNaN(value));
  if (numbers.length === 0) return undefined;
  const plain = () => numbers.map(({ labels, value }) => point(labels as Labels, value));
  switch (metric.type) {
    case 'counter':
      return { ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints: plain() };
    case 'gauge':
      return { ...base, dataPointType: DataPointType.GAUGE, dataPoints: plain() };
    case 'histogram': {
      const found = histogramsOf(metric);
      const dataPoints = found.map(({ labels, value }) => point(labels, value));
      return { ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints };
    }
    default:
      return undefined;
  }
}

/** The histograms of a metric, one per label set. Prometheus buckets are cumulative. */
function histogramsOf({ values }: Read): { labels: Labels; value: Histogram }[] {
  const found = new Map<string, { labels: Labels; atMost: [number, number][]; sum: number; count: number }>();
  for (const one of values) {
    const { le, ...labels } = one.labels as Labels;
    const key = JSON.stringify(labels);
    const histogram = found.get(key) ?? { labels, atMost: [], sum: 0, count: 0 };
    found.set(key, histogram);
    const { metricName = '' } = one as { metricName?: string };
    if (metricName.endsWith('_sum')) histogram.sum = one.value;
    else if (metricName.endsWith('_count')) histogram.count = one.value;
    else if (le !== undefined && le !== '+Inf') histogram.atMost.push([Number(le), one.value]);
  }
  return [...found.values()].map(({ labels, atMost, sum, count }) => {
    const sorted = atMost.sort(([a], [b]) => a - b);
    const below = [0, ...sorted.map(([, many]) => many)];
    const counts = [...sorted.map(([, many]) => many), count].map((many, i) => many - (below[i] ?? 0));
    return { labels, value: { buckets: { boundaries: sorted.map(([bound]) => bound), counts }, sum, count } };
  });
}
