/** A concrete call, as a decision is asked about it. */
import type { JsonObject, JsonValue } from '../../json/json-value.ts';
import type { Earlier } from './earlier.ts';
import type { Charge } from './limit.ts';

/** What an agent may do for the first time (deeds.ts). */
export const DEED_KINDS = ['operation', 'recipient', 'repository'] as const;
export type DeedKind = (typeof DEED_KINDS)[number];

/** Whether a call does something of the kind that its agent never did before. */
export type FirstTimes = Readonly<Record<DeedKind, boolean>>;

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

/** How a ref changes, as the command of receive-pack says it. */
export const REF_CHANGES = ['create', 'update', 'delete'] as const;
export type RefChange = (typeof REF_CHANGES)[number];

/** A ref that a push changes: its full name (`refs/heads/main`), and how. */
export type GitRef = { name: string; action: RefChange };

/**
 * What is known of a git request. `refs` is empty but for a push: an advertisement and git's probe name none. `pushOptions`: what a
 * push says to the code host's hooks (`git push -o`).
 */
export type GitAsk = {
  service: 'git-upload-pack' | 'git-receive-pack';
  refs: readonly GitRef[];
  pushOptions?: readonly string[];
};

/**
 * In place of a body that was not read as a whole: streamed, too large, or of a media type or coding that is not read. Whatever has
 * to know the body then counts against the agent, `has()` on it as well: it may hold anything.
 */
export class UnreadBody {
  /** A sentence for the agent, without values of the call. */
  readonly why: string;
  /** Its type, and that it has no coding, say that it has no members: a text, a file. Servers may read it in another way. */
  readonly isOpaque: boolean;
  /** Of a list of JSON: what stands in it. */
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
  /** Undefined: there is none. */
  body: JsonObject | UnreadBody | undefined;
  /** Whether the body is a form, whatever the platform's manifest says of bodies. */
  isForm?: boolean;
  /** Another method that the call counts as, for rules that hold or deny: a tool that destroys is sent as a POST. */
  actsAs?: Method;
  /** Of a git request; its path is `/git/<owner>/<repo>/…`, without `.git`. */
  git?: GitAsk;
  /** The person whom it is for, where the platform honours one: whether an issuer verifies who that is, or only a source asserts it. */
  caller?: { verified: boolean };
  /**
   * Whether its agent does it for the first time, where a rule asks; absent: nobody looked, so that whatever mentions it counts
   * against the agent.
   */
  firstTimes?: FirstTimes;
  /** What it takes of which limits of rules; absent: nobody looked, so that such rules depend on it. */
  charges?: readonly Charge[];
  /** The rules that apply for what its agent did before; absent: nobody looked, so that rules which look back depend on it. */
  earlier?: readonly Earlier[];
  /** Of a call of the past: rules that look back from it, of which it cannot be told whether they apply. */
  untold?: readonly Pick<Earlier, 'source' | 'place'>[];
  /** As what rules look back at it later, in the store's form. */
  kinds?: readonly string[];
  /** Those of them that are to be noted: as the others a call was just now. */
  notes?: readonly string[];
  /**
   * A call of the past, of which not all is known: neither query nor headers nor body of a `row`, and also of a sealed `request` not
   * what its agent had done before. Rules whose condition reads that depend on the call.
   */
  recorded?: 'row' | 'request';
};

/** The members of a body, as far as it was read: none of one that was not. For what is said of a call, not for what decides it. */
export const readMembers = ({ body }: Pick<CallAsk, 'body'>): JsonObject =>
  body === undefined || body instanceof UnreadBody ? {} : body;
