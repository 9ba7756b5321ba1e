/** The stored form of the terms of standing approvals: sealed, because they quote the approved call. */
import type { Broker } from '../broker.ts';
import { canonicalJson, sha256Hex } from '../crypto/canonical.ts';
import type { JsonObject } from '../policy/facts.ts';
import type { StandingTerms } from '../policy/standing-terms.ts';
import { readStored, StoredObject } from '../store/stored-json.ts';
import type { StandingApprovalTable } from '../store/tables/approvals.ts';

/** Version of the stored format. Terms in another format, of another release, approve nothing. */
const FORMAT = 1;

type Ref = Pick<StandingApprovalTable, 'organisation_id' | 'id'>;

/** `sentence`: the description of the terms that was shown to whoever decided. */
export type SealedTerms = StandingTerms & { sentence: string };

const placeOf = ({ organisation_id: organisationId, id: rowId }: Ref) => ({
  table: 'standing_approvals' as const,
  column: 'terms' as const,
  organisationId,
  rowId,
});

export const sealTerms = ({ vault }: Pick<Broker, 'vault'>, ref: Ref, terms: SealedTerms): Buffer =>
  vault.seal(placeOf(ref), JSON.stringify({ format: FORMAT, ...terms }));

/** Opens stored terms; undefined when they are in another format. Throws SealError when the stored value was modified or belongs to another row. */
export function openTerms(
  { vault }: Pick<Broker, 'vault'>,
  approval: Ref & Pick<StandingApprovalTable, 'terms'>,
): SealedTerms | undefined {
  const text = vault.open(placeOf(approval), approval.terms).toString('utf8');
  const { format, ...terms } = readStored(StoredObject, text, 'standing approval');
  return format === FORMAT ? (terms as unknown as SealedTerms) : undefined;
}

/** SHA-256 of the canonical form of terms, in hexadecimal. */
export const hashOfTerms = ({ basis, free, session }: StandingTerms): string =>
  sha256Hex(canonicalJson(JSON.parse(JSON.stringify({ basis, free, session })) as JsonObject));
