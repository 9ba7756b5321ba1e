/** Handles a call for a person who has to connect the platform first: the link, and the wait for that person. */
import { createHash } from 'node:crypto';
import type { Action, CallOutcome } from '../client/action.ts';
import type { ConsentStatus } from '../client/read-answers.ts';
import type { ToolAnswer } from './answer.ts';
import type { PersonQuestion } from './ask-person.ts';
import { consentAnswer } from './outcome-answer.ts';
import type { ToolRequest } from './peer.ts';
import type { ToolHost } from './tool-host.ts';
import { waitFor } from './waiting.ts';

type NotReady = Extract<CallOutcome, { kind: 'not_ready' }>;
export type PendingConsent = { token: string; url: string; outcome: NotReady };

/** `completed`: the call can now be retried. */
export type ConsentEnd = { kind: 'completed' } | { kind: 'answer'; answer: ToolAnswer };

/** Returns the pending consent of an outcome; undefined when consent does not help, or none could be begun. */
export function pendingConsent(outcome: CallOutcome): PendingConsent | undefined {
  if (outcome.kind !== 'not_ready' || outcome.code !== 'consent_required') return undefined;
  const { consentToken: token, consentUrl: url } = outcome;
  return token === undefined || url === undefined ? undefined : { token, url, outcome };
}

/** Begins a new consent for a person whose token is no longer valid. Undefined when that does not apply, or fails. */
export async function consentAgain(
  { client }: ToolHost,
  { platform, caller, connection_id }: Action,
  outcome: CallOutcome,
  signal: AbortSignal,
): Promise<PendingConsent | undefined> {
  if (outcome.kind !== 'not_ready' || outcome.code !== 'platform_reauth_needed') return undefined;
  // With a link in the outcome, an owner has to connect the platform, with one token for all.
  if (caller === undefined || outcome.consentUrl !== undefined) return undefined;
  const started = await client.startConsent({ platform, caller, ...(connection_id && { connection_id }) }, signal);
  if (!started.ok) return undefined;
  const { consentToken: token, consentUrl: url } = started.value;
  return { token, url, outcome: { ...outcome, ...started.value } };
}

const UNOPENED = 'They did not open the link.';
const UNSHOWN = 'Nobody was shown the link.';
const OVER = 'The link is over.';

/** `hash`: of the call, by hashOf. `platform`: its id. */
export function consentAsked(
  host: ToolHost,
  { token, url, outcome }: PendingConsent,
  { hash, platform }: { hash: string; platform: string },
): PersonQuestion<ConsentEnd> {
  const message = `Waiting for the person for whom this call is to connect ${platform}`;
  const unfinished = (words?: string): ConsentEnd => ({ kind: 'answer', answer: consentAnswer(outcome, words) });
  return {
    for: 'consent',
    id: token,
    hash,
    url,
    message,
    words:
      `The person for whom this call is has to connect ${platform} first, at ${url}, and the call was not made yet. Give them the link, and ` +
      'nobody else, then make the identical call again: it waits for them.',
    again: async () => !(await host.repeats.begin(linkKey(token), undefined)).isNew,
    wait: async (request, { endsAt, unshown = false }) => {
      const status = await statusAtEnd(host, request, token, { endsAt, news: `${message}: ${url}` });
      if (status === 'completed') return { kind: 'completed' };
      return unfinished(status === 'expired' ? OVER : unshown ? UNSHOWN : undefined);
    },
    unopened: () => unfinished(UNOPENED),
    unfinished: ({ unshown }) => unfinished(unshown ? UNSHOWN : undefined),
  };
}

/** The key that marks the link of a consent as already sent to a client. */
const linkKey = (token: string): string => createHash('sha256').update(`link of ${token}`).digest('hex');

/** Polls the consent. Undefined when its status could not be read. */
async function statusAtEnd(
  { client }: ToolHost,
  request: ToolRequest,
  token: string,
  { endsAt, news }: { endsAt: number; news: string },
): Promise<ConsentStatus['status'] | undefined> {
  const poll = (waitSeconds: number) => client.consent(token, { waitSeconds, signal: request.signal });
  const isOver = ({ status }: ConsentStatus) => status !== 'pending';
  // When several requests wait for one person, the broker lets one wait and answers the others immediately.
  const found = await waitFor(poll, isOver, { request, endsAt, news, pauseMs: 900 });
  return found.ok ? found.value.status : undefined;
}
