/** Result of a call that was sent, or was about to be. */
import type { Decided, NotPassedOn } from '../audit/outcome.ts';
import type { RawAnswer, ReadAnswer } from '../egress/answers/answer.ts';
import type { Followed } from '../egress/redirect.ts';
import type { Transferred } from '../egress/streamed-body.ts';
import type { AccessEnded } from '../policy/access-ended.ts';
import type { Verdict } from '../policy/facts.ts';
import type { Streamed } from './streamed.ts';

export type Forwarded =
  /**
   * `lapsed`: the credential still works but ends soon. `justIssued`: a 401 to a token that the authorization server had just issued.
   * `followed`: the answer comes from the redirect target, which never got the credential. `wantedScopes`: on a 403 of an MCP server, the
   * scopes that the token lacks (RFC 6750 section 3.1).
   */
  | {
      kind: 'answer';
      status: number;
      read: ReadAnswer<string | Buffer>;
      /** Only for a raw call whose answer is stored. */
      raw?: RawAnswer;
      lapsed?: boolean;
      justIssued?: boolean;
      followed?: Followed;
      wantedScopes?: readonly string[];
    }
  | {
      kind: 'refused_locally';
      /** `no_token`: no token is issued to the connection; `no_token_for_call`: none that is valid for this call. */
      error:
        | 'endpoint_refused'
        | 'body_refused'
        | 'credential_malformed'
        | 'credential_over'
        | 'no_token'
        | 'no_token_for_call';
      detail: string;
    }
  | { kind: 'unreachable'; code: string; detail: string; sent: boolean; followed?: Followed }
  /** The answer was passed on, as far as it was received. */
  | { kind: 'streamed'; status: number; streamed: Streamed; followed?: Followed }
  /** The code host's answer is not a git answer, and was not passed on. */
  | { kind: 'not_passed_on'; status: number; cause: NotPassedOn; sent: Transferred }
  /** The MCP server's tool differs from the accepted one. */
  | { kind: 'quarantined'; detail: string }
  /** The call was denied by the decision after waiting for a token. */
  | { kind: 'denied_meanwhile'; verdict: Extract<Verdict, { kind: 'deny' }>; decided: Decided };

/** Results that lead to an outcome without another decision. */
export type Concluded = Exclude<Forwarded, { kind: 'quarantined' | 'denied_meanwhile' }>;

export const isConcluded = (forwarded: Forwarded): forwarded is Concluded =>
  forwarded.kind !== 'quarantined' && forwarded.kind !== 'denied_meanwhile';

/**
 * Applies a stop to the result of a call that was in flight. `accessEnded`: why its answer is withheld or cut off. A result that had
 * already ended in another way is unchanged.
 *
 * @param why the stop reason of the lease; undefined when it was not stopped
 */
export function asStopped<Result extends Forwarded>(
  forwarded: Result,
  why: AccessEnded | undefined,
): { forwarded: Result; accessEnded?: AccessEnded } {
  if (why === undefined) return { forwarded };
  switch (forwarded.kind) {
    case 'answer':
      return { forwarded, accessEnded: why };
    case 'unreachable':
      return forwarded.code === 'access_ended' ? { forwarded, accessEnded: why } : { forwarded };
    case 'streamed': {
      const { streamed } = forwarded;
      // The client was cut off at the end, or within an answer that had arrived completely.
      const isCut = ['complete', 'client_closed', 'access_ended'].includes(streamed.ended);
      if (!isCut) return { forwarded };
      return { forwarded: { ...forwarded, streamed: { ...streamed, ended: 'access_ended' } }, accessEnded: why };
    }
    default:
      return { forwarded };
  }
}
