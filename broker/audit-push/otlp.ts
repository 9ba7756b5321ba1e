/** Sends rows as log records, by OTLP over HTTP in its JSON encoding (OpenTelemetry Protocol 1.x, "OTLP/HTTP"). */

import type { SettingsOf } from '../config-file/audit-sinks.ts';
import { answeredJson } from '../notify/post.ts';
import { postBatch } from './post-batch.ts';
import type { Delivered, Delivering, Line, Sink } from './sink.ts';

const LOGS_PATH = '/v1/logs';

type Otlp = Delivering<SettingsOf<'otlp'>>;
type AnyValue =
  | { stringValue: string }
  | { boolValue: boolean }
  | { intValue: string }
  | { doubleValue: number }
  | { arrayValue: { values: AnyValue[] } }
  | { kvlistValue: { values: { key: string; value: AnyValue }[] } }
  | Record<string, never>;

/** Converts a JSON value to OTLP's AnyValue; null is an empty value. Integers have 64 bits; a collector rejects a batch with a longer one. */
function anyValue(value: unknown): AnyValue {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } };
  if (typeof value === 'object' && value !== null) return { kvlistValue: { values: attributes(value) } };
  return {};
}

const attributes = (record: object): { key: string; value: AnyValue }[] =>
  Object.entries(record).map(([key, value]) => ({ key, value: anyValue(value) }));

const nanoseconds = (ms: number): string => `${ms}000000`;

/** `severityNumber` 9 is INFO. */
const logRecord = ({ index, id, at, reason, text }: Line, now: number) => ({
  timeUnixNano: nanoseconds(at),
  observedTimeUnixNano: nanoseconds(now),
  severityNumber: 9,
  severityText: 'INFO',
  eventName: 'agent_broker.audit',
  attributes: attributes({
    'agent_broker.audit_id': id,
    'agent_broker.log_index': index,
    'agent_broker.reason': reason,
  }),
  body: anyValue(JSON.parse(text)),
});

/** Returns the logs endpoint: a collector's base URL gets the path for logs, while vendors may give the complete URL of the endpoint. */
function logsUrl(address: string): URL {
  const base = address.replace(/\/$/, '');
  return new URL(base.endsWith(LOGS_PATH) ? base : `${base}${LOGS_PATH}`);
}

async function send(delivering: Otlp, lines: readonly Line[]): Promise<Delivered> {
  const { settings, secret, organisationId, now } = delivering;
  const resource = { 'service.name': 'agent-broker', 'agent_broker.organisation': organisationId };
  const scopeLogs = [{ scope: { name: 'agent-broker.audit' }, logRecords: lines.map((line) => logRecord(line, now)) }];
  const resourceLogs = lines.length === 0 ? [] : [{ resource: { attributes: attributes(resource) }, scopeLogs }];
  const header = settings.header?.toLowerCase() ?? 'authorization';
  const sent = await postBatch(delivering, {
    url: logsUrl(settings.url),
    headers: { 'content-type': 'application/json', ...(secret && { [header]: secret.reveal() }) },
    body: JSON.stringify({ resourceLogs }),
  });
  if (sent.kind !== 'taken') return sent;
  const { partialSuccess } = answeredJson(sent.answer) as {
    partialSuccess?: { rejectedLogRecords?: number | string };
  };
  const rejected = Number(partialSuccess?.rejectedLogRecords ?? 0);
  if (!(rejected > 0)) return { kind: 'arrived' };
  // "The client MUST NOT retry the request when it receives a partial success response."
  const rows = Math.min(rejected, lines.length);
  return { kind: 'arrived', rejected: { rows, why: `It rejected ${rows} of ${lines.length} rows (partial success).` } };
}

export const otlp: Sink<SettingsOf<'otlp'>> = {
  deliver: (delivering, { lines }) => send(delivering, lines),
  test: (delivering) => send(delivering, []),
};
