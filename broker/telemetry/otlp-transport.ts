/** Sends data to the collector through the broker's guarded HTTP client. */
import type { ExportResponse, IExporterTransport } from '@opentelemetry/otlp-exporter-base';
import type { Secret } from '../crypto/secret.ts';
import type { Outbound } from '../egress/dispatcher.ts';
import type { OutageWatch } from '../egress/origin-pool.ts';

/** The collector's answer is not used. */
const MAX_BYTES = 64 * 1024;

/** Statuses after which the data may be sent again (OTLP, Failures). */
const RETRYABLE = new Set([429, 502, 503, 504]);

export type Collector = { url: URL; headers: Readonly<Record<string, Secret>>; type: string };

/** `watch`: notified whether the collector accepts data. */
export function otlpTransport(
  outbound: Pick<Outbound, 'send'>,
  { url, headers, type }: Collector,
  watch: OutageWatch,
): IExporterTransport {
  return {
    send: async (data, timeoutMillis): Promise<ExportResponse> => {
      const revealed = Object.entries(headers).map(([name, value]) => [name, value.reveal()]);
      const answer = await outbound.send({
        url,
        method: 'POST',
        headers: { ...Object.fromEntries(revealed), 'content-type': type },
        body: Buffer.from(data.buffer, data.byteOffset, data.byteLength),
        maxResponseBytes: MAX_BYTES,
        idleTimeoutMs: timeoutMillis,
        totalTimeoutMs: timeoutMillis,
      });
      if (answer.kind === 'answer' && answer.status >= 200 && answer.status < 300) {
        watch.worked();
        return { status: 'success' };
      }
      const why = answer.kind === 'unreachable' ? answer.detail : `The collector answered ${answer.status}.`;
      const error = new Error(why);
      watch.failed(error);
      return answer.kind === 'unreachable' || RETRYABLE.has(answer.status)
        ? { status: 'retryable', error }
        : { status: 'failure', error };
    },
    shutdown: () => {},
  };
}
