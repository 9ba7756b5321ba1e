/** Names that people give things in governance files, and by which they are found. */
import { z } from 'zod';

export const NAME_FORM =
  'write 1 to 64 letters (a to z, without accents), digits, ".", "_" or "-", beginning and ending with a letter or digit';

/** `what`: is shown by editors. */
export const name = (what: string) =>
  z
    .string()
    .regex(/^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/, NAME_FORM)
    .describe(what);

const SPACED = /^[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9])?$/;

/** The same with spaces, as agents and rules may be called. */
export const spacedName = (what: string) =>
  z.string().regex(SPACED, `${NAME_FORM} (spaces may stand between them)`).describe(what);

export const isAgentName = (text: string): boolean => SPACED.test(text);
