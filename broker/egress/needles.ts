/**
 * The credential that was injected, in the forms in which an upstream may echo it, and how to take it out of an answer
 * (CX-01, CX-09). Only whole credentials are looked for: if parts counted, an agent that makes the upstream echo its
 * guesses could read the credential off the redactions, letter by letter.
 */
import type { Secret } from '../crypto/secret.ts';
import { decodeBase64Runs, isBase64 } from './base64-runs.ts';
import { type Classes, KEEP_WHITE_SPACE, SKIP_WHITE_SPACE, undoEscapes, type View, viewOf } from './canonical-view.ts';
import { patternsOf, ROUNDS } from './needle-forms.ts';
import { type Match, PatternSearch } from './pattern-search.ts';

/** What is put in the place of a credential. */
export const REDACTED = '[redacted]';

/** Below this many characters nothing is looked for: such texts occur by themselves. */
export const SHORTEST_CREDENTIAL = 8;

/**
 * From this many bytes on, a credential is also looked for across white space and in what base64 decodes to. A shorter one
 * may occur there by itself.
 */
const SHORTEST_ACROSS = 16;

/** What a search found: nothing, bytes without the credential, or that it cannot be taken out. */
export type Redaction = { kind: 'absent' } | { kind: 'redacted'; bytes: Buffer } | { kind: 'blocked' };

const EQUALS = 0x3d;

/** A stretch of the original, from its first byte to behind its last. */
type Span = { from: number; to: number };

/** Holds credentials, so like `Secret` it cannot be printed or serialised. */
export class SecretNeedles {
  /** Long ones across white space, which is taken out first. */
  readonly #across: PatternSearch | undefined;
  /** Long ones with white space as it stands: taken out, it may join what is before them to an escape with their first characters. */
  readonly #inPlace: PatternSearch | undefined;
  /** Short ones. */
  readonly #short: PatternSearch | undefined;

  /** Use `makeNeedles`. */
  constructor(secrets: readonly string[]) {
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

  /** Whether the credential is in the bytes, in any form that is looked for. */
  isIn(bytes: Buffer): boolean {
    return (this.#short !== undefined && isInPlace(this.#short, bytes)) || this.#isLongIn(bytes, 0);
  }

  /** Without white space, then as the bytes stand, each with escapes undone, then in what base64 in them decodes to. */
  #isLongIn(bytes: Buffer, depth: number): boolean {
    if (this.#across === undefined) return false;
    const view = viewOf(bytes, SKIP_WHITE_SPACE);
    // Without an escape there is nothing that white space could have joined.
    const { hasMarker } = view;
    if (isInEscapes(this.#across, view, SKIP_WHITE_SPACE) || (hasMarker && isInPlace(this.#inPlace!, bytes)))
      return true;
    const decoded = depth < ROUNDS ? decodeBase64Runs(view.bytes, view.length) : undefined;
    return decoded !== undefined && this.#isLongIn(decoded, depth + 1);
  }

  /** Takes the credential out of the bytes. What can be seen but not be traced to its place is blocked. */
  takeOut(bytes: Buffer): Redaction {
    if (!this.isIn(bytes)) return { kind: 'absent' };
    const spans = [
      ...(this.#across === undefined ? [] : spansIn(this.#across, bytes, SKIP_WHITE_SPACE)),
      ...[this.#inPlace, this.#short].flatMap((search) => (search ? spansIn(search, bytes, KEEP_WHITE_SPACE) : [])),
    ];
    const clean = replaceSpans(bytes, spans);
    return this.isIn(clean) ? { kind: 'blocked' } : { kind: 'redacted', bytes: clean };
  }

  /** The text without the credential; the very same text when it is not in it. */
  redact(text: string): string {
    const redaction = this.takeOut(Buffer.from(text));
    if (redaction.kind === 'absent') return text;
    return redaction.kind === 'blocked' ? REDACTED : redaction.bytes.toString();
  }

  toJSON(): string {
    return '[secret]';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}

/**
 * Prepares the search for a credential; takes some microseconds, so make it once a connection.
 *
 * @param options.basic the credential is `user:password`: the password alone is looked for as well.
 */
export function makeNeedles(secret: Secret, options: { basic?: boolean } = {}): SecretNeedles {
  const whole = secret.reveal();
  const colon = options.basic ? whole.indexOf(':') : -1;
  const secrets = colon === -1 ? [whole] : [whole, whole.slice(colon + 1)];
  return new SecretNeedles(secrets.filter(({ length }) => length >= SHORTEST_CREDENTIAL));
}

const isInPlace = (search: PatternSearch, bytes: Buffer): boolean =>
  isInEscapes(search, viewOf(bytes, KEEP_WHITE_SPACE), KEEP_WHITE_SPACE);

function isInEscapes(search: PatternSearch, view: View, classes: Classes): boolean {
  if (search.has(view.bytes, view.length)) return true;
  for (let round = 0; round < ROUNDS && view.hasMarker && undoEscapes(view, classes); round++)
    if (search.has(view.bytes, view.length)) return true;
  return false;
}

/** Where the credential is in the original, as far as that can be told. */
function spansIn(search: PatternSearch, bytes: Buffer, classes: Classes): Span[] {
  const view = viewOf(bytes, classes, true);
  const spans = search.all(view.bytes, view.length).map((match) => spanOf(view, match));
  for (let round = 0; round < ROUNDS && view.hasMarker && undoEscapes(view, classes); round++)
    spans.push(...search.all(view.bytes, view.length).map((match) => spanOf(view, match)));
  return spans;
}

function spanOf({ bytes, length, origin }: View, { at, needle }: Match): Span {
  let start = at;
  let end = at + needle.bytes.length;
  // The neighbours carry some bits of the credential's first and last byte.
  if (needle.before && isBase64(bytes[start - 1])) start--;
  if (needle.after) {
    if (end < length && isBase64(bytes[end])) end++;
    while (end < length && bytes[end] === EQUALS) end++;
  }
  return { from: origin!.from[start]!, to: origin!.to[end - 1]! };
}

function replaceSpans(bytes: Buffer, spans: readonly Span[]): Buffer {
  const parts: Buffer[] = [];
  const marker = Buffer.from(REDACTED);
  let copied = 0;
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from)) {
    // One that overlaps what was taken out already belongs to it.
    if (from >= copied) parts.push(bytes.subarray(copied, from), marker);
    copied = Math.max(copied, to);
  }
  return Buffer.concat([...parts, bytes.subarray(copied)]);
}
