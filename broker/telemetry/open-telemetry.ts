/** Exports traces and metrics to a collector with OpenTelemetry. Loaded only when one is configured. */
import { ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import { createOtlpNetworkExportDelegate, ExporterMetrics, OTLPExporterBase } from '@opentelemetry/otlp-exporter-base';
import {
  type ISerializer,
  JsonMetricsSerializer,
  JsonTraceSerializer,
  MetricsExporterMetricsHelper,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
  TraceExporterMetricsHelper,
} from '@opentelemetry/otlp-transformer';
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader, type ResourceMetrics } from '@opentelemetry/sdk-metrics';
import {
  BatchSpanProcessor,
  type ReadableSpan,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Secret } from '../crypto/secret.ts';
import type { Outbound } from '../egress/dispatcher.ts';
import type { OutageWatch } from '../egress/origin-pool.ts';
import { withTimeout } from '../runtime/waits.ts';
import type { CallSpan, SpanAttributes, StepName, StepSpan, Tracing } from './call-watch.ts';
import type { Instruments } from './instruments.ts';
import { otlpTransport } from './otlp-transport.ts';
import { registryProducer } from './registry-producer.ts';

/** Time to export pending data when the broker stops. */
const SHUTDOWN_MS = 2_000;
const TYPES = { json: 'application/json', protobuf: 'application/x-protobuf' } as const;

/** The configuration from OpenTelemetry's environment variables. */
export type OtelConfig = {
  /** Where traces and metrics are sent; undefined when they are not. */
  traces: URL | undefined;
  metrics: URL | undefined;
  headers: Readonly<Record<string, Secret>>;
  timeoutMs: number;
  encoding: 'json' | 'protobuf';
  /** Share of calls that are traced, 0 to 1. */
  ratio: number;
  metricsIntervalMs: number;
  /** Resource attributes, including `service.name`. */
  attributes: Readonly<Record<string, string>>;
};

export type TelemetryOptions = OtelConfig & {
  version: string;
  /** Reaches only the collector. Closed at the end. */
  outbound: Outbound;
  watch: OutageWatch;
  /** The metrics to export; undefined: none. */
  instruments: Instruments | undefined;
};

/** Starts exporting. A slow or unavailable collector delays no call: data that it does not take in time is dropped. */
export function startOpenTelemetry(options: TelemetryOptions): Tracing {
  const { traces, metrics, outbound, instruments, version } = options;
  const resource = resourceFromAttributes(options.attributes);
  const provider = traces && tracerProvider(options, traces, resource);
  const meters = metrics && instruments && meterProvider(options, metrics, instruments, resource);
  const tracer = provider?.getTracer('agent-broker', version);
  return {
    begin: (traceparent) => {
      const span = tracer?.startSpan('call', { kind: SpanKind.SERVER }, ROOT_CONTEXT);
      if (!span?.isRecording()) return undefined;
      // The client decides neither whether a call is traced nor its trace id: otherwise it could make the broker trace everything.
      const asked = traceparent === undefined ? null : parseTraceParent(traceparent);
      if (asked) span.addLink({ context: { ...asked, isRemote: true, traceFlags: TraceFlags.NONE } });
      return callSpan(
        span,
        (name, kind) => tracer?.startSpan(name, { kind }, trace.setSpan(ROOT_CONTEXT, span)) ?? span,
      );
    },
    stop: async () => {
      const last = Promise.allSettled([provider?.shutdown(), meters?.shutdown()]);
      await withTimeout(last, SHUTDOWN_MS);
      await outbound.close();
    },
  };
}

function callSpan(span: Span, start: (name: StepName, kind: SpanKind) => Span): CallSpan {
  return {
    traceId: span.spanContext().traceId,
    step: (name) => stepSpan(start(name, name === 'forward' ? SpanKind.CLIENT : SpanKind.INTERNAL)),
    set: (attributes) => void span.setAttributes(attributes),
    end: (error) => endSpan(span, error),
  };
}

function stepSpan(span: Span): StepSpan {
  const { traceId, spanId } = span.spanContext();
  return {
    traceparent: `00-${traceId}-${spanId}-01`,
    set: (attributes: SpanAttributes) => void span.setAttributes(attributes),
    end: (error) => endSpan(span, error),
  };
}

function endSpan(span: Span, error: string | undefined): void {
  if (error !== undefined) span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}

function tracerProvider(options: TelemetryOptions, url: URL, resource: Resource): TracerProvider {
  const serializer = options.encoding === 'json' ? JsonTraceSerializer : ProtobufTraceSerializer;
  const exporter = exporterTo<ReadableSpan[], unknown>(options, url, serializer, TraceExporterMetricsHelper);
  return new TracerProvider({
    resource,
    sampler: new TraceIdRatioBasedSampler(options.ratio),
    spanProcessors: [new BatchSpanProcessor({ exporter, exportTimeoutMillis: options.timeoutMs })],
  });
}

function meterProvider(
  options: TelemetryOptions,
  url: URL,
  instruments: Instruments,
  resource: Resource,
): MeterProvider {
  const serializer = options.encoding === 'json' ? JsonMetricsSerializer : ProtobufMetricsSerializer;
  const exporter = exporterTo<ResourceMetrics, unknown>(options, url, serializer, MetricsExporterMetricsHelper);
  const { metricsIntervalMs: exportIntervalMillis, timeoutMs, version } = options;
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis,
    exportTimeoutMillis: Math.min(timeoutMs, exportIntervalMillis),
    metricProducers: [registryProducer(instruments, { resource, version })],
  });
  return new MeterProvider({ resource, readers: [reader] });
}

function exporterTo<Internal, Response>(
  { outbound, headers, timeoutMs, encoding, watch }: TelemetryOptions,
  url: URL,
  serializer: ISerializer<Internal, Response>,
  metricsHelper: ConstructorParameters<typeof ExporterMetrics<Internal>>[0]['metricsHelper'],
): OTLPExporterBase<Internal> {
  const own = new ExporterMetrics<Internal>({
    componentType: 'otlp_http_exporter',
    metricsHelper,
    url: undefined,
    meterProvider: undefined,
    responseAttributesFromError: () => ({}),
  });
  const transport = otlpTransport(outbound, { url, headers, type: TYPES[encoding] }, watch);
  const delegate = createOtlpNetworkExportDelegate(
    { timeoutMillis: timeoutMs, concurrencyLimit: 4, compression: 'none' },
    serializer,
    own,
    transport,
  );
  return new OTLPExporterBase<Internal>(delegate);
}
