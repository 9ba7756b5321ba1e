/** A statement of the store as a test case: the row that it names, and the rows that it must not touch or return. */
import type { Selectable } from 'kysely';
import type { Schema } from '../../broker/store/schema.ts';
import type { Db } from '../../broker/store/store.ts';

export type Table = keyof Schema;
export type Row<T extends Table> = Selectable<Schema[T]>;
/** Stands for any other value: of another row of the same kind. */
export const OTHER = Symbol('other');
export type Others<T extends Table> = { [Column in keyof Row<T>]?: Row<T>[Column] | typeof OTHER | Partial<Row<T>> };
/** A row beside the named one, or in its place, which must stay as it is: named after the column in which it differs. */
export type Neighbour = { name: string; row: Record<string, unknown> };
export type Case = {
  what: string;
  table: Table;
  given: object;
  others: object;
  run: (db: Db, row: never) => Promise<unknown>;
  /** Whether the statement reads: then its result is compared, and not the rows. */
  reads?: true;
};

export const [PAST, NOW, FUTURE] = [1_000, 2_000, 3_000];
export const BYTES = Buffer.from('bytes');
export const TOKENS = { credential: BYTES, refreshToken: null, tokenId: 'new', oauth: '{}', upstreamScopes: null };
/** Columns of unique indexes with a list of allowed values. */
export const LISTED = new Set(['cause', 'kind', 'step']);
/** The ids of an organisation and of a row. */
export const OWN = { organisation_id: OTHER, id: OTHER } as const;

/**
 * `given`: columns of the named row. `others`: for each column, the value in a row that must stay as it is, or the values of several columns that depend on
 * each other.
 */
export function changing<T extends Table>(
  table: T,
  what: string,
  { given = {}, others }: { given?: Partial<Row<T>>; others: Others<T> },
  run: (db: Db, row: Row<T>) => Promise<unknown>,
): Case {
  return { what, table, given, others, run };
}

/** The same for a statement that reads the named row. */
export const reading = <T extends Table>(...given: Parameters<typeof changing<T>>): Case => ({
  ...changing(...given),
  reads: true,
});

export const placeOf = (row: { organisation_id: string; id: string }) => ({
  organisationId: row.organisation_id,
  id: row.id,
});
export const upstream = (row: Row<'upstream_tokens'>) => ({
  organisationId: row.organisation_id,
  connectionId: row.connection_id,
  purpose: row.purpose,
});
export const PENDING = { status: 'pending', expires_at: FUTURE } as const;
export const DENIED = { status: 'denied', decided_at: PAST, decided_by: 'owner', decision_audit_id: 'audit' } as const;
export const ENDED_BY_OWNER = { ended_at: PAST, ended_because: 'owner' } as const;
export const APPROVED = {
  status: 'approved',
  decided_at: PAST,
  decided_by: 'owner',
  decision_audit_id: 'audit',
  granted: '[]',
  private_key: BYTES,
  claim_until: FUTURE,
} as const;
