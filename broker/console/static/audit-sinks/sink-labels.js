// Labels for audit sinks.
/** @typedef {import('../../answers.ts').AuditSink} AuditSink */
import { moment } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/** @type {Readonly<Record<string, string>>} */
const KINDS = { webhook: 'Webhook', otlp: 'OpenTelemetry (OTLP)', s3: 'S3-compatible storage', file: 'File' };
export const kindName = (/** @type {string} */ kind) => KINDS[kind] ?? kind;

/** @type {Readonly<Record<AuditSink['format'], string>>} */
export const FORMATS = { ocsf: 'OCSF 1.9.0 events', json: 'JSON lines' };

const count = new Intl.NumberFormat('en');
export const formatRows = (/** @type {number} */ rows) => `${count.format(rows)} row${rows === 1 ? '' : 's'}`;

/** @param {AuditSink} sink @returns {{ words: string, kind: string }} */
export function badgeOf({ status, failing_since, delivered_at }) {
  if (status === 'paused') return { words: 'Paused', kind: '' };
  if (failing_since !== null) return { words: 'Failing', kind: 'bad' };
  return delivered_at === null ? { words: 'New', kind: '' } : { words: 'Working', kind: 'good' };
}

/** Returns the destination of the sink and its format. @param {AuditSink} sink */
export function placeOf({ kind, settings, format, name }) {
  const { url, bucket, prefix } = /** @type {Record<string, string | undefined>} */ (settings);
  const place = kind === 'file' ? `${name}.jsonl` : (url ?? '');
  const inside = bucket === undefined ? '' : `, bucket ${[bucket, prefix].filter(Boolean).join('/')}`;
  return `${visibleLine(`${place}${inside}`)}: ${FORMATS[format]}`;
}

/** Returns how far the receiver is behind, and the last error. @param {AuditSink} sink */
export function stateOf({ rows_behind, delivered_at, failing_since, last_error, retry_at, rejected_rows, next_index }) {
  const far = rows_behind === 0 ? 'Up to date.' : `${formatRows(rows_behind)} wait, from row ${next_index} on.`;
  const last = delivered_at ? ` Last batch accepted ${moment(delivered_at)}.` : '';
  const wrong =
    failing_since === null
      ? ''
      : ` Not accepted since ${moment(failing_since)}: ${visibleLine(last_error ?? '')}${retry_at ? ' It is retried.' : ''}`;
  const rejected = rejected_rows === 0 ? '' : ` It rejected ${formatRows(rejected_rows)}.`;
  return `${far}${last}${wrong}${rejected}`;
}
