/** Answers to calls that need a setup step first (specification, Governed call, 409 and 412). */
import { pollUrlOf } from '../approvals/access-requests.ts';
import { assertNever, type Outcome } from '../audit/outcome.ts';
import { type BegunConsent, consentPollUrl, consentUrl, MAX_OPEN_CONSENTS } from '../people/consents.ts';
import { NO_CALLER_NAMED } from '../people/people.ts';
import type { Action } from '../wire/action.ts';
import { json, type Reply } from './reply.ts';

export type Unready = Extract<
  Outcome,
  { kind: 'inactive' | 'reauth_needed' | 'needs_consent' | 'not_connected' | 'consent_required' }
>;

/** Builds the answer. `common`: members of every such body. `baseUrl`: where owners connect. */
export function unreadyReply(
  outcome: Unready,
  { platform, scope }: Pick<Action, 'platform' | 'scope'>,
  common: Record<string, unknown>,
  baseUrl: string,
): Reply {
  switch (outcome.kind) {
    case 'inactive':
      return json(409, {
        error: 'agent_inactive',
        consent_requested: false,
        message: `${sentence(outcome.detail)} An owner has to finish setting it up.`,
        ...common,
      });
    case 'reauth_needed':
      return json(409, {
        error: 'platform_reauth_needed',
        ...(outcome.cause === 'malformed' && { reason: 'credential_malformed' }),
        scope,
        ...requestFields(outcome.token),
        message: reauthMessage(outcome, platform),
        ...(outcome.call.caller === undefined && connectUrls(baseUrl, outcome.connectionId)),
        ...common,
      });
    case 'needs_consent': {
      const { token, scope: lacking } = outcome;
      const wait =
        token === undefined ? '' : ' They have been asked: poll poll_url until it says approved, then try again.';
      return json(409, {
        error: 'needs_consent',
        reason_code: 'needs_consent',
        scope: lacking,
        ...requestFields(token),
        message: `${outcome.refused ? `${platform} refused the call: its` : 'The'} connection ${outcome.refused ? '' : `of ${platform} `}was granted less than ${lacking} needs. An owner has to connect it again and consent to more, at connect_url.${wait}`,
        ...connectUrls(baseUrl, outcome.connectionId),
        ...common,
      });
    }
    case 'not_connected':
      return json(412, {
        error: 'platform_not_connected',
        message: `No connection of ${platform} can be used. An owner has to connect it.`,
        ...(outcome.connectionId !== undefined && { consent_url: connectUrl(baseUrl, outcome.connectionId) }),
        ...common,
      });
    case 'consent_required':
      return json(412, {
        error: 'consent_required',
        reason: outcome.reason,
        message: consentMessage(outcome),
        ...(outcome.detail !== undefined && { detail: outcome.detail }),
        ...(outcome.consent && consentFields(baseUrl, outcome.consent)),
        ...common,
      });
    default:
      return assertNever(outcome);
  }
}

function reauthMessage({ cause, detail, call }: Extract<Unready, { kind: 'reauth_needed' }>, platform: string): string {
  if (call.caller !== undefined)
    return `The token that this person gave for ${platform} has expired, or the platform refuses it. They have to consent again: begin that with POST /v1/consent/caller/start.`;
  if (cause === 'malformed')
    return `The stored credential of ${platform} cannot be sent: it contains characters that no header can carry, or lacks parts that auth of the platform needs. An owner has to replace it, at connect_url; repeating the call does not help.`;
  if (cause === 'no_token' && detail !== undefined)
    return `${sentence(detail)} Nothing was sent; repeating the call does not help.`;
  return `The platform refused the stored credential of ${platform}. An owner has to connect it again, at connect_url; repeating the call does not help.`;
}

/** Returns the page where an owner connects this connection. */
const connectUrl = (baseUrl: string, connectionId: string): string =>
  `${baseUrl}/console/connections?connect=${connectionId}`;

/** Returns whether an access request waits for an owner, and where to poll it (specification, Governed call, 409). */
const requestFields = (token: string | undefined) => ({
  consent_requested: token !== undefined,
  ...(token !== undefined && { request_token: token, poll_url: pollUrlOf({ token }) }),
});

/** Both names have the same value (specification, Governed call, 409). */
function connectUrls(baseUrl: string, connectionId: string) {
  const url = connectUrl(baseUrl, connectionId);
  return { connect_url: url, consent_url: url };
}

type ConsentRequired = Extract<Outcome, { kind: 'consent_required' }>;

const CONSENT_MESSAGES: Record<ConsentRequired['reason'], string> = {
  no_caller:
    'This platform has one token per person: name the person for whom the call is made, in "caller" or the header X-Svc-Caller.',
  asserted_not_allowed:
    'This platform does not trust this source to say who a person is: send an assertion (a JWT) instead.',
  not_consented: 'This person has not connected the platform.',
};
const CONSENTED_TO_LESS = 'This person has to connect the platform again, and consent to more.';

/** Returns where the person consents, and where the agent polls (specification, Per-person consent). */
export const consentFields = (baseUrl: string, { token, expiresAt }: BegunConsent) => ({
  consent_url: consentUrl(baseUrl, token),
  consent_token: token,
  poll_url: consentPollUrl(token),
  expires_at: new Date(expiresAt).toISOString(),
});

function consentMessage({ reason, detail, isTooLittle, awaits, consent }: ConsentRequired): string {
  if (reason === 'no_caller' && detail !== undefined && detail !== NO_CALLER_NAMED)
    return 'This platform has one token per person, and the caller of the call was not accepted, for the reason in "detail".';
  const message = isTooLittle ? CONSENTED_TO_LESS : CONSENT_MESSAGES[reason];
  if (awaits === 'owner')
    return 'This person has connected the platform. An owner has to confirm that before it is used.';
  if (awaits === 'other_consents')
    return `${message} ${MAX_OPEN_CONSENTS} consents of this agent are pending already, so no other was started: wait until some are given or have expired.`;
  return consent
    ? `${message} Give them consent_url, poll poll_url with ?wait=50 until it is completed, then try again.`
    : message;
}

/** Adds the full stop to a text that has none. */
export const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);
