/** Finds the forms of a credential in bytes, of which more may follow. */

import { matchForm, startsBefore } from './form-match.ts';
import { FormWindows, MAX_UNSEEN } from './form-windows.ts';
import type { Form } from './forms.ts';

/** A range of bytes; `to` is exclusive. */
export type Span = { from: number; to: number };

/** Matches, and the position from which the bytes may be the beginning of one (their length if none). */
export type Found = { spans: Span[]; free: number };

/** Searches bytes. `isEnd`: no more will follow. */
export type FindForms = (bytes: Buffer, isEnd: boolean) => Found;

/** Prepares the search. `forms`: not empty. */
export function formSearch(forms: readonly Form[]): FindForms {
  const windows = new FormWindows(forms);
  const byFirst = formsByFirst(forms);
  return (bytes, isEnd) => {
    const { length } = bytes;
    const spans: Span[] = [];
    let free = length;
    const readFrom = (form: Form, start: number) => {
      const { end, partial } = matchForm(form, bytes, length, start);
      if (end !== -1) spans.push({ from: start, to: end });
      if (partial && !isEnd && start < free) free = start;
    };
    windows.scan(bytes, (at, places) => {
      for (const { form, index, back } of places)
        if (at >= back) for (const start of startsBefore(form, bytes, index, at - back)) readFrom(form, start);
    });
    for (let at = Math.max(0, length - MAX_UNSEEN); at < length; at++)
      for (const form of byFirst[bytes[at] ?? 0] ?? []) readFrom(form, at);
    return { spans, free };
  };
}

/** The forms that may begin with a given byte. */
function formsByFirst(forms: readonly Form[]): readonly (readonly Form[] | undefined)[] {
  const byFirst: Form[][] = [];
  for (const form of forms)
    for (const byte of new Set(form.characters[0]?.map((spelling) => spelling[0]))) {
      if (byte === undefined) continue;
      byFirst[byte] ??= [];
      byFirst[byte].push(form);
    }
  return Array.from(byFirst);
}
