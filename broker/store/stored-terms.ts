/** The JSON columns of a grant, read by their schema: a row that was altered outside of the broker grants nothing. */
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

/** The labels of an agent; `null`: none. Throws Error that names the agent. */
export const readLabels = (text: string | null, id: string): string[] =>
  text === null ? [] : readStored(Texts, text, `labels of agent ${id}`);

/**
 * The scopes of a grant. `id`: of the grant, for the error.
 *
 * @throws Error that names the grant, when the column is no JSON list of texts.
 */
export const readScopes = (text: string, id: string): string[] => readStored(Texts, text, `scopes of grant ${id}`);

/**
 * The constraints of a grant. `id`: of the grant, for the error.
 *
 * @throws Error that names the grant, when the column holds no constraints.
 */
export const readConstraints = (text: string, id: string): Constraints =>
  readStored(StoredConstraints, text, `constraints of grant ${id}`);
