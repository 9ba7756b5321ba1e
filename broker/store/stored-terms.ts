/** Parses the JSON columns of a grant by schema: a row that was altered outside of the broker grants nothing. */
import { z } from 'zod';
import { type Constraints, REF_CHANGES } from '../policy/facts.ts';
import { readStored, Texts } from './stored-json.ts';

export const StoredConstraints = z.object({
  recipients: z.array(z.string()).exactOptional(),
  repos: z.array(z.string()).exactOptional(),
  refs: z.array(z.string()).exactOptional(),
  ref_changes: z.array(z.enum(REF_CHANGES)).exactOptional(),
  allow_repo_creation: z.boolean().exactOptional(),
});

/** Parses the labels of an agent; `null`: none. Throws an Error that names the agent. */
export const readLabels = (text: string | null, id: string): string[] =>
  text === null ? [] : readStored(Texts, text, `labels of agent ${id}`);

/**
 * Parses the scopes of a grant. `id`: id of the grant, for the error.
 *
 * @throws Error that names the grant, when the column is not a JSON list of strings.
 */
export const readScopes = (text: string, id: string): string[] => readStored(Texts, text, `scopes of grant ${id}`);

/**
 * Parses the constraints of a grant. `id`: id of the grant, for the error.
 *
 * @throws Error that names the grant, when the column does not hold constraints.
 */
export const readConstraints = (text: string, id: string): Constraints =>
  readStored(StoredConstraints, text, `constraints of grant ${id}`);
