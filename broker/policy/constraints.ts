/** The constraints of a grant. */
import { REF_CHANGES, type RefChange } from './call-ask.ts';

/** Constraints of a grant. Absent means unconstrained; an empty list allows nothing. */
export type Constraints = {
  recipients?: readonly string[];
  repos?: readonly string[];
  allow_repo_creation?: boolean;
  /** Patterns of branches and tags that may be written (refs/patterns.ts). */
  refs?: readonly string[];
  /** The permitted kinds of change of a ref. */
  ref_changes?: readonly RefChange[];
};

/** Whether a grant constrains which refs are written, or how. */
export function limitsRefs({ refs, ref_changes: changes }: Constraints): boolean {
  return refs !== undefined || (changes !== undefined && !REF_CHANGES.every((one) => changes.includes(one)));
}
