/** The notes of `write_note`: in memory, bounded, oldest evicted first. They cannot be read back. */

export type Note = { text: string; at: number };

export type Notes = {
  /** Stores a note. Returns its number, counted from 1, and how many are stored. */
  add(text: string): { number: number; kept: number };
  /** For tests: the stored notes, oldest first. */
  all(): readonly Note[];
};

export const MAX_NOTES = 100;
/** Characters of one note. */
export const MAX_NOTE_LENGTH = 1_000;

/** `clock`: milliseconds since the Unix epoch. */
export function makeNotes(clock: () => number): Notes {
  const kept: Note[] = [];
  let written = 0;
  return {
    add: (text) => {
      kept.push({ text, at: clock() });
      if (kept.length > MAX_NOTES) kept.shift();
      return { number: ++written, kept: kept.length };
    },
    all: () => kept,
  };
}
