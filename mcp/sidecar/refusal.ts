/** Answers of the sidecar itself: refusals, with reasons. */
import { type ServerResponse, STATUS_CODES } from 'node:http';
import { errorBody } from '../../json/error-body.ts';
import type { JsonValue } from '../../json/json-value.ts';

/** A platform's error format, as the broker describes it, and the fixed status of its errors, if it has one. */
export type ErrorForm = { body: JsonValue; status: number | undefined };

/** The format of refusals for git: one line of plain text, because git prints no other body of an error. */
export const ONE_LINE = 'one line';

/** `detail`: why, and what to do next. `retryAfterSeconds`: set if the same request may succeed soon. */
export type Refusal = { status: number; error: string; detail: string; retryAfterSeconds?: number };

/** Refuses a client that has not shown the placeholder, without naming connections or addresses of the run. */
export function refuseStranger(response: ServerResponse, { status, error, detail }: Refusal): void {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(`${JSON.stringify({ error, detail })}\n`);
}

/**
 * Refuses a request of the command in the same form as the broker's refusals (docs/unmodified.md), so that an exception of a client library shows the
 * reason.
 */
export function refuse(
  response: ServerResponse,
  { status, error, detail, retryAfterSeconds }: Refusal,
  form?: ErrorForm | typeof ONE_LINE,
): void {
  if (form === ONE_LINE) {
    response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' });
    response.end(`agent-broker: ${error} - ${detail}\n`);
    return;
  }
  const { type, body } =
    form === undefined
      ? {
          type: 'application/problem+json',
          body: JSON.stringify({ title: STATUS_CODES[status] ?? 'Error', status, detail, error }),
        }
      : errorBody(form.body, { status, code: error, detail: `agent-broker: ${error}: ${detail}` });
  if (retryAfterSeconds === undefined)
    // A retry would be refused again, or may repeat a call that was made.
    response.writeHead(form?.status ?? status, {
      'Content-Type': type,
      ...{ 'x-should-retry': 'false', 'stripe-should-retry': 'false' },
    });
  else response.writeHead(status, { 'Content-Type': type, 'Retry-After': String(retryAfterSeconds) });
  response.end(`${body}\n`);
}
