/** Matches members of JSON against a mask: by name at any depth, or by path. */
import { foldName } from '../names.ts';

/** A folded name, split at each `*`. */
type Name = readonly string[];
/** `**`: any number of steps. */
type Step = Name | '**';

/** The state of matching paths at a value: indexes of the steps that come next, for all paths together. */
export type MatchState = readonly number[];

export type MemberMask = {
  /** The state at the root, before the first step. */
  start: MatchState;
  /** Advances by one step. `isMasked`: a path ends here, or the name is masked at any depth. Costs as much as there are paths, at any depth. */
  step(from: MatchState, key: string | number): { led: MatchState; isMasked: boolean };
  /** Whether a name is masked at any depth. */
  isNamed(name: string): boolean;
  /** Whether text that is not JSON contains a member that may be masked: a quoted name before a colon that is masked by name, or is the last name of a path. */
  isIn(text: string): boolean;
};

/** Marks the end of a path, after its last step. */
const END = undefined;
const MAX_KNOWN = 1_000;
/** A name in JSON, also inside strings that contain JSON. Bounded, so that the search in a long text is linear in the number of quotes. */
const QUOTED = /"([^"]{1,200}?)\\{0,7}"\s*:/g;
const ESCAPE = /\\{1,8}u([\da-f]{4})/gi;
/** Steps without a name that could be searched in text: `*`, `**` and indexes. */
const OF_NO_NAME = /^(?:\*+|\d+)$/;

const nameOf = (written: string): Name => written.split('*').map(foldPiece);

/** A separator at the start of a name is significant; after a `*` it is inside the name, and is dropped. */
const foldPiece = (piece: string, i: number): string => {
  const folded = foldName(piece);
  return i > 0 && folded.startsWith('_') ? folded.slice(1) : folded;
};

/** @param members names and paths, as rules write them. Returns undefined when there are none */
export function memberMask(members: readonly string[]): MemberMask | undefined {
  if (members.length === 0) return undefined;
  const names = members.filter((member) => !member.startsWith('/')).map(nameOf);
  const steps: (Step | typeof END)[] = [];
  const begins = members
    .filter((member) => member.startsWith('/'))
    .map((member) => {
      const begin = steps.length;
      steps.push(
        ...member
          .slice(1)
          .split('/')
          .map((step): Step => (step === '**' ? '**' : nameOf(step))),
        END,
      );
      return begin;
    });
  /** Adds a step, and the following one when it is `**`, which may stand for no step. Returns whether a path ends here. */
  const add = (to: Set<number>, step: number): boolean => {
    const next = steps[step];
    if (next === END) return true;
    to.add(step);
    return next === '**' && add(to, step + 1);
  };
  const start = new Set<number>();
  for (const begin of begins) add(start, begin);
  // Cached, because an answer has few distinct names that occur often.
  const known = new Map<string, boolean>();
  const isNamed = (name: string): boolean => {
    let is = known.get(name);
    if (is === undefined) {
      const folded = foldName(name);
      is = names.some((pieces) => matches(pieces, folded));
      if (known.size < MAX_KNOWN) known.set(name, is);
    }
    return is;
  };
  const ends = members
    .filter((member) => member.startsWith('/'))
    .map((path) => nameOf(path.split('/').findLast((step) => step !== '' && !OF_NO_NAME.test(step)) ?? '*'));
  const mayBeMasked = (name: string) => isNamed(name) || ends.some((pieces) => matches(pieces, foldName(name)));
  return {
    start: [...start],
    isNamed,
    isIn: (text) => {
      for (const [, name = ''] of text.matchAll(QUOTED))
        if (mayBeMasked(name.replace(ESCAPE, (_, code) => String.fromCharCode(Number.parseInt(code, 16))))) return true;
      return false;
    },
    step: (from, key) => {
      let isMasked = typeof key === 'string' && isNamed(key);
      if (from.length === 0) return { led: from, isMasked };
      const folded = foldName(String(key));
      const led = new Set<number>();
      for (const at of from) {
        const step = steps[at];
        const goesOn = step === '**' ? add(led, at) : step !== END && matches(step, folded) && add(led, at + 1);
        isMasked ||= goesOn;
      }
      return { led: [...led], isMasked };
    },
  };
}

function matches(pieces: Name, folded: string): boolean {
  const [first = '', ...others] = pieces;
  if (others.length === 0) return folded === first;
  const last = others.pop() ?? '';
  if (folded.length < first.length + last.length || !folded.startsWith(first) || !folded.endsWith(last)) return false;
  let at = first.length;
  for (const piece of others) {
    const found = folded.indexOf(piece, at);
    if (found < 0 || found + piece.length > folded.length - last.length) return false;
    at = found + piece.length;
  }
  return true;
}
