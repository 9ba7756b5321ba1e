/** Schemas of names in governance files, which identify things. */
import { z } from 'zod';

export const NAME_FORM =
  'write 1 to 64 letters (a to z, without accents), digits, ".", "_" or "-", beginning and ending with a letter or digit';

/** `what`: the description that editors show. */
export const name = (what: string) =>
  z
    .string()
    .regex(/^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/, NAME_FORM)
    .describe(what);

const SPACED = /^[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9])?$/;

/** A name that may contain spaces, for agents and rules. */
export const spacedName = (what: string) =>
  z.string().regex(SPACED, `${NAME_FORM} (with spaces between them)`).describe(what);

/** A name as one word of a command line. Names have no characters that shells treat specially, except spaces. */
export const nameAsWord = (name: string): string => (name.includes(' ') ? `"${name}"` : name);

export const isAgentName = (text: string): boolean => SPACED.test(text);
