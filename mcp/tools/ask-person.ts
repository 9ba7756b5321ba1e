/** Asks a person to do something at a link, in the best way that the client supports: a link that it opens, or an open request. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LinkSent } from './handed.ts';
import type { ToolRequest } from './peer.ts';
import { readState, type WaitsFor, writeState } from './request-state.ts';

/** Clients suspend their timeout during a dialog, or have five minutes (docs/clients). */
const MAX_DIALOG_MS = 240_000;

/** A refusal within this time is by the client itself (without a person), not by a person who read it. */
const MIN_REFUSAL_MS = 2_000;

/** What the request waits for. `Value`: the result. */
export type PersonQuestion<Value> = WaitsFor & {
  /** Hash of the call, by hashOf. */
  hash: string;
  url: string | undefined;
  /** Text for the person, beside the link. */
  message: string;
  /** Text for clients that show an error as text. */
  words: string;
  /** Whether the client was already sent the link with an earlier request. */
  again: () => boolean | Promise<boolean>;
  /** Waits with the request open until `endsAt` (time in milliseconds). `unshown`: the client did not show the link. */
  wait: (request: ToolRequest, options: { endsAt: number; unshown?: boolean }) => Promise<Value>;
  /** Result when the person did not open the link. */
  unopened: () => Value;
  /** Result when the time to wait is used up. */
  unfinished: (options: { unshown: boolean }) => Value;
};

export type Done<Value> = { kind: 'done'; value: Value };

/** Throws the reason of the request's signal when it is aborted. `waitMs`: how long a request is kept open after a dialog. */
export async function askPerson<Value>(
  request: ToolRequest,
  asked: PersonQuestion<Value>,
  { endsAt, waitMs }: { endsAt: number; waitMs: number },
): Promise<Done<Value> | LinkSent> {
  const { url, message, words, hash, id } = asked;
  const { resumed, openLink } = request;
  const state = readState(resumed?.state);
  const isResumed = state.for === asked.for && state.id === id && state.hash === hash;
  if (request.opensLinks === 'by_result' && url !== undefined && !isResumed)
    return { kind: 'link', id, url, message, state: writeState(asked, hash, Date.now()) };
  if (request.opensLinks === 'by_error' && url !== undefined && !(await asked.again()))
    return { kind: 'link_first', id, url, message, words };
  const unshown = resumed !== undefined && resumed.action !== 'accept';
  if (unshown && isRefusal(resumed.action, Date.now() - state.at)) return { kind: 'done', value: asked.unopened() };
  if (request.opensLinks === 'by_request' && openLink && url !== undefined)
    return await withDialog({ ...request, openLink }, { ...asked, url }, waitMs);
  return { kind: 'done', value: await asked.wait(request, { endsAt, unshown }) };
}

/** Whether a person, and not the client itself, refused to open a link that was sent `ms` before. */
const isRefusal = (action: string, ms: number): boolean =>
  (action === 'decline' || action === 'cancel') && !(ms < MIN_REFUSAL_MS);

/** Asks the person to open the link. A decision made elsewhere meanwhile cancels the dialog. */
async function withDialog<Value>(
  request: ToolRequest & Required<Pick<ToolRequest, 'openLink'>>,
  asked: PersonQuestion<Value> & { url: string },
  waitMs: number,
): Promise<Done<Value>> {
  const done = (value: Value): Done<Value> => ({ kind: 'done', value });
  const closing = new AbortController();
  const signal = AbortSignal.any([request.signal, closing.signal]);
  const settled = asked.wait({ ...request, signal }, { endsAt: Date.now() + MAX_DIALOG_MS }).then(done);
  const askedAt = performance.now();
  const link = { id: asked.id, url: asked.url, message: asked.message };
  const opened = request.openLink(link, signal).catch(() => 'nobody_asked' as const);
  try {
    const first = await Promise.race([settled, opened]);
    if (typeof first === 'object') return first;
    if (isRefusal(first, performance.now() - askedAt)) return done(asked.unopened());
    // The person has opened the link, or the client could not show it.
    const unfinished = () => done(asked.unfinished({ unshown: first !== 'accept' }));
    return await Promise.race([settled, sleep(waitMs, undefined, { signal }).then(unfinished)]);
  } finally {
    closing.abort();
    await settled.catch(() => {});
  }
}
