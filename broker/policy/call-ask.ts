/** A concrete call, as input of a decision. */
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import type { Earlier } from './earlier.ts';
import type { Charge } from './limit.ts';

/** The kinds of action that an agent may do for the first time (seen-values.ts). */
export const DEED_KINDS = ['operation', 'recipient', 'repository'] as const;
export type SeenValueKind = (typeof DEED_KINDS)[number];

/** For each kind, whether the call does something that its agent never did before. */
export type FirstTimes = Readonly<Record<SeenValueKind, boolean>>;

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

/** How a ref changes, as in the command of receive-pack. */
export const REF_CHANGES = ['create', 'update', 'delete'] as const;
export type RefChange = (typeof REF_CHANGES)[number];

/** A ref that a push changes: its full name (`refs/heads/main`), and how. */
export type GitRef = { name: string; action: RefChange };

/**
 * Facts about a git request. `refs` is empty except for a push: an advertisement and git's probe name no refs. `pushOptions`: options for the code host's
 * hooks (`git push -o`).
 */
export type GitAsk = {
  service: 'git-upload-pack' | 'git-receive-pack';
  refs: readonly GitRef[];
  pushOptions?: readonly string[];
};

/**
 * Stands in place of a body that was not read completely: streamed, too large, or of an unsupported media type or coding. Every rule and constraint that
 * needs the body then decides against the agent, as does `has()` on it: the body may contain anything.
 */
export class UnreadBody {
  /** A sentence for the agent, without values of the call. */
  readonly why: string;
  /** Whether its type, and the absence of a coding, show that the body has no members: a text, a file. Servers may interpret it differently all the same. */
  readonly isOpaque: boolean;
  /** The items of a JSON list; undefined for any other body. */
  readonly items: readonly JsonValue[] | undefined;

  constructor(why: string, { isOpaque = false, items }: { isOpaque?: boolean; items?: readonly JsonValue[] } = {}) {
    this.why = why;
    this.isOpaque = isOpaque;
    this.items = items;
  }
}

/** The concrete part of an ask: a real call. Absent on standing questions (permissions, AuthZEN, TRQP). */
export type CallAsk = {
  method: Method;
  /** The path, in normal form, without the query (see endpoint.ts). */
  path: string;
  /** Raw text after `?`, or the empty string. */
  query: string;
  headers: Readonly<Record<string, string>>;
  /** Undefined: the call has no body. */
  body: JsonObject | UnreadBody | undefined;
  /** Whether the body is a form, even if the platform's manifest declares another kind. */
  isForm?: boolean;
  /** Another method as which the call is treated by rules that hold or deny: a tool that destroys is sent as a POST, but counts as a DELETE. */
  actsAs?: Method;
  /** Present for a git request, whose path is `/git/<owner>/<repo>/…`, without `.git`. */
  git?: GitAsk;
  /** The person for whom the call is made, where the platform supports it. `verified`: an issuer verified the identity; false: a source only asserts it. */
  caller?: { verified: boolean };
  /**
   * Whether the agent does this for the first time, when a rule asks for it; absent: not determined, so any rule that mentions it decides against the agent.
   */
  firstTimes?: FirstTimes;
  /** How much the call takes of which limits of rules; absent: not determined, so the result of such rules is open. */
  charges?: readonly Charge[];
  /** The rules that apply because of the agent's earlier calls; absent: not determined, so the result of rules that look back is open. */
  earlier?: readonly Earlier[];
  /** For a past call: rules with a look-back condition, whose result cannot be evaluated any more. */
  untold?: readonly Pick<Earlier, 'source' | 'place'>[];
  /** The kinds under which rules that look back find this call later, in the store's form. */
  kinds?: readonly string[];
  /** The `kinds` that are to be stored; the others were stored recently for another call. */
  notes?: readonly string[];
  /**
   * For a past call, which is known in part. `row`: query, headers and body are unknown, and so is what its agent had done before; `request`: from a sealed
   * request, only what its agent had done before is unknown. The result of rules whose condition reads these is open.
   */
  recorded?: 'row' | 'request';
};

/** Returns the members of a body that was read; none for an unread body. For descriptions of a call only, never for decisions. */
export const readMembers = ({ body }: Pick<CallAsk, 'body'>): JsonObject =>
  body === undefined || body instanceof UnreadBody ? {} : body;
