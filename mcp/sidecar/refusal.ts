/** Answers of the sidecar's own: what it refuses, and why. */
import { type ServerResponse, STATUS_CODES } from 'node:http';
import { errorBody } from '../../json/error-body.ts';
import type { JsonValue } from '../../json/json-value.ts';

/** How a platform writes an error, as the broker says it, and the one status that it always has. */
export type ErrorForm = { body: JsonValue; status: number | undefined };

/** `detail`: why, and what to do next. */
export type Refusal = { status: number; error: string; detail: string };

/** To whoever has not shown to be the command: nothing of what there is. */
export function refuseStranger(response: ServerResponse, { status, error, detail }: Refusal): void {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(`${JSON.stringify({ error, detail })}\n`);
}

/** To the command: as the broker tells of its refusals (docs/unmodified.md), so that what a client throws says why. */
export function refuse(response: ServerResponse, { status, error, detail }: Refusal, form?: ErrorForm): void {
  const { type, body } =
    form === undefined
      ? {
          type: 'application/problem+json',
          body: JSON.stringify({ title: STATUS_CODES[status] ?? 'Error', status, detail, error }),
        }
      : errorBody(form.body, { status, code: error, detail: `agent-broker: ${error}: ${detail}` });
  // The same request would be refused again, or may have been made.
  const noRetry = { 'x-should-retry': 'false', 'stripe-should-retry': 'false' };
  response.writeHead(form?.status ?? status, { 'Content-Type': type, ...noRetry });
  response.end(`${body}\n`);
}
