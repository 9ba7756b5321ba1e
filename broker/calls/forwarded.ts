/** What became of a call that was sent, or was about to be. */
import type { Decided, NotPassedOn } from '../audit/outcome.ts';
import type { RawAnswer, ReadAnswer } from '../egress/answer.ts';
import type { Followed } from '../egress/redirect.ts';
import type { Transferred } from '../egress/streamed-body.ts';
import type { AccessEnded } from '../policy/access-ended.ts';
import type { Verdict } from '../policy/facts.ts';
import type { Streamed } from './streamed.ts';

export type Forwarded =
  /**
   * `lapsed`: the credential works still, and is about to end. `justIssued`: of a 401 to a token that the
   * authorization server had just issued. `followed`: the answer is of the address that the platform redirected to, which never got
   * the credential. `wantedScopes`: of a 403 of an MCP server, the scopes that it wants a token to have (RFC 6750 section 3.1).
   */
  | {
      kind: 'answer';
      status: number;
      read: ReadAnswer<string | Buffer>;
      /** Of a raw call whose answer is kept. */
      raw?: RawAnswer;
      lapsed?: boolean;
      justIssued?: boolean;
      followed?: Followed;
      wantedScopes?: readonly string[];
    }
  | {
      kind: 'refused_locally';
      /** `no_token`: no token is issued to the connection; `no_token_for_call`: none that is good for this call. */
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
  /** The answer was passed on, as far as it came. */
  | { kind: 'streamed'; status: number; streamed: Streamed; followed?: Followed }
  /** Of a code host, and not for git. */
  | { kind: 'not_passed_on'; status: number; cause: NotPassedOn; sent: Transferred }
  /** The tool of an MCP server is not the one that was accepted. */
  | { kind: 'quarantined'; detail: string }
  /** While the call waited for a token it was forbidden. */
  | { kind: 'denied_meanwhile'; verdict: Extract<Verdict, { kind: 'deny' }>; decided: Decided };

/** What can be concluded without another decision. */
export type Concluded = Exclude<Forwarded, { kind: 'quarantined' | 'denied_meanwhile' }>;

export const isConcluded = (forwarded: Forwarded): forwarded is Concluded =>
  forwarded.kind !== 'quarantined' && forwarded.kind !== 'denied_meanwhile';

/**
 * What became of a call that was stopped while it was made. `accessEnded`: why its answer is not handed out, or not as a whole. What had ended
 * otherwise before stays what it is.
 *
 * @param why of its lease; undefined: it was not stopped
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
      // Whoever took it was cut off: with the end, or in the middle of what had come as a whole.
      const isCut = ['complete', 'client_closed', 'access_ended'].includes(streamed.ended);
      if (!isCut) return { forwarded };
      return { forwarded: { ...forwarded, streamed: { ...streamed, ended: 'access_ended' } }, accessEnded: why };
    }
    default:
      return { forwarded };
  }
}
