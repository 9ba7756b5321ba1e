/**
 * Finds the injected credential in the encodings in which an upstream may echo it, and redacts it from a response (CX-01,
 * CX-09). Only complete credentials match: if parts did, an agent that makes the upstream echo guesses could use the
 * redaction as an oracle, character by character.
 */

import type { Secret } from '../../crypto/secret.ts';
import { present } from '../../runtime/present.ts';
import { decodeBase64Runs, isBase64 } from './base64-runs.ts';
import {
  type Classes,
  KEEP_WHITE_SPACE,
  SKIP_WHITE_SPACE,
  undoEscapes,
  type View,
  viewInPlace,
  viewOf,
} from './canonical-view.ts';
import { patternsOf, ROUNDS } from './pattern-forms.ts';
import { type Match, PatternSearch } from './pattern-search.ts';

/** Replaces a credential. */
const REDACTED = '[redacted]';

/** Shorter credentials are not searched for: such strings occur by chance. */
export const SHORTEST_CREDENTIAL = 8;

/**
 * Minimum bytes of a credential that is also searched for across white space and in decoded base64. A shorter one may occur
 * there by chance.
 */
const SHORTEST_ACROSS = 16;

/** Not found; the redacted bytes; or found but not redactable. */
export type Redaction = { kind: 'absent' } | { kind: 'redacted'; bytes: Buffer } | { kind: 'blocked' };

const EQUALS = 0x3d;

/** A range of the original; `to` is exclusive. */
type Span = { from: number; to: number };

/** Holds credentials, so like `Secret` it cannot be printed or serialised. */
export class CredentialPatterns {
  /** Long patterns, with white space removed. */
  readonly #across: PatternSearch | undefined;
  /** Long patterns with white space kept: removing it may join the text before them with their first characters to an escape. */
  readonly #inPlace: PatternSearch | undefined;
  /** Short patterns. */
  readonly #short: PatternSearch | undefined;
  readonly #secrets: readonly string[];

  /** Internal: use `makeCredentialPatterns`. */
  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
    const isLong = (secret: string) => viewOf(Buffer.from(secret), SKIP_WHITE_SPACE).length >= SHORTEST_ACROSS;
    const searchFor = (some: readonly string[], classes: Classes) => {
      const patterns = some.flatMap((secret) => patternsOf(secret, classes, SHORTEST_CREDENTIAL));
      return patterns.length > 0 ? new PatternSearch(patterns) : undefined;
    };
    const long = secrets.filter(isLong);
    this.#across = searchFor(long, SKIP_WHITE_SPACE);
    this.#inPlace = searchFor(long, KEEP_WHITE_SPACE);
    this.#short = searchFor(
      secrets.filter((secret) => !isLong(secret)),
      KEEP_WHITE_SPACE,
    );
  }

  /** Whether the bytes contain the credential in any of the encodings. */
  isIn(bytes: Buffer): boolean {
    return (this.#short !== undefined && isInPlace(this.#short, bytes)) || this.#isLongIn(bytes, 0);
  }

  /** Searches without white space, then with it, each with escapes decoded, then in decoded base64. */
  #isLongIn(bytes: Buffer, depth: number): boolean {
    if (this.#across === undefined) return false;
    const markers: number[] = [];
    const view = viewOf(bytes, SKIP_WHITE_SPACE, false, markers);
    if (isInEscapes(this.#across, view, SKIP_WHITE_SPACE)) return true;
    // Without an escape character, removing white space cannot have formed an escape.
    if (markers.length > 0) {
      const inPlace = present(this.#inPlace, 'search in place');
      if (isInEscapes(inPlace, viewInPlace(bytes, markers), KEEP_WHITE_SPACE)) return true;
    }
    const decoded = depth < ROUNDS ? decodeBase64Runs(view.bytes, view.length) : undefined;
    return decoded !== undefined && this.#isLongIn(decoded, depth + 1);
  }

  /** Redacts the credential. `blocked` when it is found in a view but cannot be mapped back to the original bytes. */
  redactBytes(bytes: Buffer): Redaction {
    if (!this.isIn(bytes)) return { kind: 'absent' };
    const spans = [
      ...(this.#across === undefined ? [] : spansIn(this.#across, bytes, SKIP_WHITE_SPACE)),
      ...[this.#inPlace, this.#short].flatMap((search) => (search ? spansIn(search, bytes, KEEP_WHITE_SPACE) : [])),
    ];
    const clean = replaceSpans(bytes, spans);
    return this.isIn(clean) ? { kind: 'blocked' } : { kind: 'redacted', bytes: clean };
  }

  /** The redacted text; the same string when the credential is not in it. */
  redact(text: string): string {
    const redaction = this.redactBytes(Buffer.from(text));
    if (redaction.kind === 'absent') return text;
    return redaction.kind === 'blocked' ? REDACTED : redaction.bytes.toString();
  }

  /** Returns the texts that are searched for, so that another thread can run the same search. */
  reveal(): readonly string[] {
    return this.#secrets;
  }

  toJSON(): string {
    return '[secret]';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}

/**
 * Parts of a credential. `basic`: it is `user:password`, and the password alone is searched for too. `parts`: searched for in its place.
 */
export type MadeOf = { basic?: boolean; parts?: readonly Secret[] | undefined };

/** Returns the texts that are searched for. */
export function textsToFind(secret: Secret, { basic = false, parts }: MadeOf): string[] {
  if (parts) return parts.map((part) => part.reveal());
  const whole = secret.reveal();
  const colon = basic ? whole.indexOf(':') : -1;
  return colon === -1 ? [whole] : [whole, whole.slice(colon + 1)];
}

/** Compiles the patterns of a credential. Takes some microseconds, so call it once per connection. */
export function makeCredentialPatterns(secret: Secret, madeOf: MadeOf = {}): CredentialPatterns {
  const texts = textsToFind(secret, madeOf);
  return new CredentialPatterns(texts.filter(({ length }) => length >= SHORTEST_CREDENTIAL));
}

const isInPlace = (search: PatternSearch, bytes: Buffer): boolean =>
  isInEscapes(search, viewOf(bytes, KEEP_WHITE_SPACE), KEEP_WHITE_SPACE);

function isInEscapes(search: PatternSearch, view: View, classes: Classes): boolean {
  if (search.has(view.bytes, view.length)) return true;
  for (let round = 0; round < ROUNDS && view.markers.length > 0 && undoEscapes(view, classes); round++)
    if (search.has(view.bytes, view.length)) return true;
  return false;
}

/** Ranges of the original that hold the credential, as far as they can be mapped back. */
function spansIn(search: PatternSearch, bytes: Buffer, classes: Classes): Span[] {
  const view = viewOf(bytes, classes, true);
  const spans = search.all(view.bytes, view.length).map((match) => spanOf(view, match));
  for (let round = 0; round < ROUNDS && view.markers.length > 0 && undoEscapes(view, classes); round++)
    for (const match of search.all(view.bytes, view.length)) spans.push(spanOf(view, match));
  return spans;
}

function spanOf({ bytes, length, origin }: View, { at, pattern }: Match): Span {
  let start = at;
  let end = at + pattern.bytes.length;
  // The adjacent base64 characters carry some bits of the credential's first and last byte.
  if (pattern.before && isBase64(bytes[start - 1])) start--;
  if (pattern.after) {
    if (end < length && isBase64(bytes[end])) end++;
    while (end < length && bytes[end] === EQUALS) end++;
  }
  const { from, to } = present(origin, 'origin of the view');
  return { from: from[start] ?? 0, to: to[end - 1] ?? 0 };
}

function replaceSpans(bytes: Buffer, spans: readonly Span[]): Buffer {
  const parts: Buffer[] = [];
  const marker = Buffer.from(REDACTED);
  let copied = 0;
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from)) {
    // Overlapping ranges are merged.
    if (from >= copied) parts.push(bytes.subarray(copied, from), marker);
    copied = Math.max(copied, to);
  }
  return Buffer.concat([...parts, bytes.subarray(copied)]);
}
