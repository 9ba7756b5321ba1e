/** Fills a template from a call. */
import { countUnused, type Found, findAt, type Judged } from './judged.ts';
import { MAX_SENTENCE, type Part, plainSentence } from './part.ts';
import { counted, valuePart } from './readable.ts';
import type { Piece, Place } from './template.ts';

const NOT_GIVEN: Part = { text: '(not given)' };

/** The parts of a call that the sentence has used so far. */
type Use = { names: (readonly string[])[]; parameters: Set<string> };

/** Fills a template; undefined when only the path is known and the template needs more. */
export function fill(pieces: readonly Piece[], judged: Judged): Part[] | undefined {
  const use: Use = { names: [], parameters: new Set() };
  const parts = partsOf(pieces, judged, use);
  if (parts === undefined) return undefined;
  return [...within(parts), ...leftOut(judged, use)];
}

/**
 * Counts the parts of the call that the sentence does not mention: `and 3 other fields`, or ` with 3 fields` when it mentions none. Parameters of the query
 * count like members of the body.
 */
function leftOut({ request }: Judged, { names, parameters }: Use): Part[] {
  if (request === undefined) return [];
  const left = countUnused(request.body, names) + request.query.filter(([name]) => !parameters.has(name)).length;
  if (left === 0) return [];
  const hasUsed = names.length > 0 || parameters.size > 0;
  return [{ text: hasUsed ? ` and ${counted(left, 'other field')}` : ` with ${counted(left, 'field')}` }];
}

function partsOf(pieces: readonly Piece[], judged: Judged, use: Use): Part[] | undefined {
  const parts: Part[] = [];
  for (const piece of pieces) {
    const more =
      piece.kind === 'text'
        ? [{ text: piece.text }]
        : piece.kind === 'value'
          ? valueParts(piece, judged, use)
          : chosen(piece.options, judged, use);
    if (more === undefined) return undefined;
    parts.push(...more);
  }
  return parts;
}

/** Fills the first option whose values are all present. Empty when only the path is known, since any option might apply. */
function chosen(options: readonly (readonly Piece[])[], judged: Judged, use: Use): Part[] | undefined {
  for (const option of options) {
    const found = placesOf(option).map((place) => findAt(place, judged));
    if (found.includes('unknown')) return [];
    if (!found.includes(undefined)) return partsOf(option, judged, use);
  }
  return [];
}

const placesOf = (pieces: readonly Piece[]): Place[] =>
  pieces.flatMap((piece) => (piece.kind === 'value' ? piece.inner.filter((one) => typeof one === 'object') : []));

type Value = Extract<Piece, { kind: 'value' }>;

function valueParts({ inner, ...style }: Value, judged: Judged, use: Use): Part[] | undefined {
  const found: (string | Found)[] = [];
  for (const one of inner) {
    const here = typeof one === 'string' ? one : findAt(one, judged);
    if (here === 'unknown') return undefined;
    if (here === undefined) return [NOT_GIVEN];
    if (typeof here !== 'string') note(here, use);
    found.push(here);
  }
  const [only] = found;
  if (found.length === 1 && typeof only === 'object') return shownParts(only, style);
  return together(found, style);
}

function note({ names = [], parameter }: Found, use: Use): void {
  use.names.push(...names);
  if (parameter !== undefined) use.parameters.add(parameter);
}

function shownParts(found: Found, style: { strong: boolean; quoted: boolean }): Part[] {
  if ('said' in found) return [{ text: found.said }];
  const { texts, more, note: words, isAmount } = found;
  const values = texts.map((text) => {
    const part = valuePart(text, { ...style, more: words, ...(isAmount && { isWord: true }) });
    // With a note, the platform may read another amount.
    return isAmount && words === undefined ? { ...part, amount: true as const } : part;
  });
  const rest: Part[] = more > 0 ? [{ text: `${more} more` }] : [];
  return listed([...values, ...rest]);
}

/** Joins parts: `a`, `a and b`, `a, b and c`. */
const listed = (parts: readonly Part[]): Part[] =>
  parts.flatMap((part, i) => {
    if (i === 0) return [part];
    return [{ text: i === parts.length - 1 ? ' and ' : ', ' }, part];
  });

/** Joins several values and characters to one value: `acme/shop`. */
function together(found: readonly (string | Found)[], style: { strong: boolean; quoted: boolean }): Part[] {
  let text = '';
  const notes: string[] = [];
  for (const one of found) {
    if (typeof one === 'string') text += one;
    else if ('said' in one || one.texts.length > 1) return [{ text: 'said' in one ? one.said : '(several)' }];
    else {
      text += one.texts[0] ?? '';
      if (one.note !== undefined) notes.push(one.note);
    }
  }
  return [valuePart(text, { ...style, more: notes.length === 0 ? undefined : notes.join('; ') })];
}

/** Cuts a sentence that is too long. */
function within(parts: readonly Part[]): Part[] {
  const kept: Part[] = [];
  let length = 0;
  for (const part of parts) {
    length += plainSentence({ parts: [part] }).length;
    if (length > MAX_SENTENCE - 100) return [...kept, { text: '… (longer than a sentence)' }];
    kept.push(part);
  }
  return kept;
}
