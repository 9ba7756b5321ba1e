/** Which members of JSON a mask names. */
import { foldName } from './names.ts';

/** A name, folded, in pieces around each `*`. */
type Name = readonly string[];
/** `**`: any number of steps. */
type Step = Name | '**';

export type MemberMask = {
  /** Whether a member is masked. `path`: the names and indexes that lead to it, itself the last one; read only where a path is masked. */
  masks(path: readonly (string | number)[]): boolean;
};

const nameOf = (written: string): Name => written.split('*').map(foldPiece);

/** A separator at the start of a name stays; behind a `*` it is one within the name. */
const foldPiece = (piece: string, i: number): string => {
  const folded = foldName(piece);
  return i > 0 && folded.startsWith('_') ? folded.slice(1) : folded;
};

/** @param members names and paths, as rules write them. Undefined: there are none */
export function memberMask(members: readonly string[]): MemberMask | undefined {
  if (members.length === 0) return undefined;
  const names = members.filter((member) => !member.startsWith('/')).map(nameOf);
  const paths = members
    .filter((member) => member.startsWith('/'))
    .map((member) => member.slice(1).split('/'))
    .map((steps) => steps.map((step): Step => (step === '**' ? '**' : nameOf(step))));
  // An answer has few names, and each of them often.
  const known = new Map<string, boolean>();
  const isNamed = (name: string): boolean => {
    let is = known.get(name);
    if (is === undefined) {
      const folded = foldName(name);
      is = names.some((pieces) => matches(pieces, folded));
      if (known.size < MOST_KNOWN) known.set(name, is);
    }
    return is;
  };
  return {
    masks: (path) => {
      const last = path.at(-1);
      if (typeof last === 'string' && isNamed(last)) return true;
      return paths.some((steps) => leadsTo(steps, 0, path, 0));
    },
  };
}

const MOST_KNOWN = 1_000;

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

/** Whether steps lead to a member, or to an object or list that it is in. */
function leadsTo(steps: readonly Step[], step: number, path: readonly (string | number)[], at: number): boolean {
  const next = steps[step];
  if (next === undefined) return at === path.length;
  if (next === '**') {
    for (let from = at; from <= path.length; from++) if (leadsTo(steps, step + 1, path, from)) return true;
    return false;
  }
  const one = path[at];
  return one !== undefined && matches(next, foldName(String(one))) && leadsTo(steps, step + 1, path, at + 1);
}
