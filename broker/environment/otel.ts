/** The standard variables of OpenTelemetry that the broker supports. */
import { z } from 'zod';
import { Secret } from '../crypto/secret.ts';
import type { OtelConfig } from '../telemetry/open-telemetry.ts';
import { decimal } from './forms.ts';

const address = z
  .string()
  .refine((text) => /^https?:\/\//i.test(text) && URL.canParse(text), 'must begin with https:// or http://');
const milliseconds = decimal('milliseconds', z.int('must be whole milliseconds').min(1).max(3_600_000));

/** `name=value,…`, values percent-encoded (OpenTelemetry, Environment variables). */
const pairs = z
  .string()
  .transform((text) => text.split(',').filter((pair) => pair.trim() !== ''))
  .refine((list) => list.every(isPair), 'must be name=value, separated by commas, with values percent-encoded')
  .transform((list) => Object.fromEntries(list.map(pairOf)));

function isPair(pair: string): boolean {
  try {
    const [name, value] = pairOf(pair);
    return pair.includes('=') && /^[^\s=]+$/.test(name) && value !== undefined;
  } catch {
    return false;
  }
}

function pairOf(pair: string): [name: string, value: string] {
  const at = pair.indexOf('=');
  return [pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())];
}

const SAMPLERS = ['always_on', 'always_off', 'traceidratio'] as const;

export const OTEL_VARIABLES = {
  OTEL_SDK_DISABLED: z.string().default('false').describe('true: no traces, and no metrics are sent'),
  OTEL_SERVICE_NAME: z.string().min(1).optional().describe('service.name of what is sent; agent-broker unless set'),
  OTEL_RESOURCE_ATTRIBUTES: pairs.default({}).describe('more attributes of this process'),
  OTEL_EXPORTER_OTLP_ENDPOINT: address.optional().describe('collector that takes OTLP over HTTP; switches traces on'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address.optional().describe('another address for traces, used unchanged'),
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: address.optional().describe('another address for metrics, used unchanged'),
  OTEL_EXPORTER_OTLP_HEADERS: pairs.optional().describe('headers for the collector, such as its key'),
  OTEL_EXPORTER_OTLP_TIMEOUT: milliseconds.default(10_000).describe('how long the collector may take, in ms'),
  OTEL_EXPORTER_OTLP_PROTOCOL: z
    .enum(['http/protobuf', 'http/json'], 'must be http/protobuf or http/json')
    .default('http/protobuf')
    .describe('how it is written'),
  OTEL_TRACES_EXPORTER: z.enum(['otlp', 'none'], 'must be otlp or none').default('otlp').describe('none: no traces'),
  OTEL_METRICS_EXPORTER: z
    .enum(['otlp', 'none', 'prometheus'], 'must be otlp, prometheus or none')
    .default('none')
    .describe('otlp: metrics are sent to the collector, too; /metrics is served in any case'),
  OTEL_METRIC_EXPORT_INTERVAL: milliseconds.default(60_000).describe('how often metrics are sent, in ms'),
  OTEL_TRACES_SAMPLER: z
    .enum(
      [...SAMPLERS, ...SAMPLERS.map((name) => `parentbased_${name}` as const)],
      `must be ${SAMPLERS.join(', ')}, or one of these with parentbased_ before it, which is the same here`,
    )
    .default('parentbased_traceidratio')
    .describe('which calls are traced; the sampling flag of the caller is ignored'),
  OTEL_TRACES_SAMPLER_ARG: decimal('a number from 0 to 1', z.number().max(1))
    .default(0.01)
    .describe('share of the calls that is traced'),
};

/** Returns the settings; undefined: nothing is exported. */
export function otelOf(env: z.output<z.ZodObject<typeof OTEL_VARIABLES>>): OtelConfig | undefined {
  if (env.OTEL_SDK_DISABLED.toLowerCase() === 'true') return undefined;
  const sampler = env.OTEL_TRACES_SAMPLER.replace('parentbased_', '');
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT?.replace(/\/$/, '');
  const at = (own: string | undefined, path: string): URL | undefined => {
    const text = own ?? (base === undefined ? undefined : `${base}${path}`);
    return text === undefined ? undefined : new URL(text);
  };
  const traces =
    env.OTEL_TRACES_EXPORTER === 'otlp' && sampler !== 'always_off'
      ? at(env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, '/v1/traces')
      : undefined;
  const metrics =
    env.OTEL_METRICS_EXPORTER === 'otlp' ? at(env.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, '/v1/metrics') : undefined;
  if (traces === undefined && metrics === undefined) return undefined;
  const headers = Object.entries(env.OTEL_EXPORTER_OTLP_HEADERS ?? {});
  return {
    traces,
    metrics,
    headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), new Secret(value)])),
    timeoutMs: env.OTEL_EXPORTER_OTLP_TIMEOUT,
    encoding: env.OTEL_EXPORTER_OTLP_PROTOCOL === 'http/json' ? 'json' : 'protobuf',
    ratio: sampler === 'always_on' ? 1 : env.OTEL_TRACES_SAMPLER_ARG,
    metricsIntervalMs: env.OTEL_METRIC_EXPORT_INTERVAL,
    attributes: {
      'service.name': 'agent-broker',
      ...env.OTEL_RESOURCE_ATTRIBUTES,
      ...(env.OTEL_SERVICE_NAME !== undefined && { 'service.name': env.OTEL_SERVICE_NAME }),
    },
  };
}
