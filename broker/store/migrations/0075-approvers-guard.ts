import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/** How many different people have approved the row `new`, without the one who decides it. `each` has a row with a `value` for each of them. */
const othersIn = (each: string): string =>
  `(select count(distinct value ->> 'decided_by') from ${each} where value ->> 'decided_by' <> new.decided_by)`;
const REFUSED = 'more people have to approve this call';

/** Refuses the approval of a call by fewer people than have to approve it: releases that do not know `approvers` would approve with one person. */
export async function approversGuard(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  for (const statement of dialect === 'sqlite' ? onSqlite() : onPostgres()) await sql.raw(statement).execute(db);
}

const IS_APPROVED = "old.status = 'pending' and new.status = 'approved' and new.approvers > 1";

const onSqlite = (): string[] => [
  `create trigger enough_approvers before update of status on approvals when ${IS_APPROVED}
   begin
     select raise(abort, '${REFUSED}')
     where ${othersIn("json_each(coalesce(new.approved_before, '[]'))")} < new.approvers - 1;
   end`,
];

const onPostgres = (): string[] => [
  `create function enough_approvers() returns trigger language plpgsql as $$
   begin
     if ${othersIn("jsonb_array_elements(coalesce(new.approved_before, '[]')::jsonb)")} < new.approvers - 1 then
       raise exception '${REFUSED}' using errcode = 'check_violation';
     end if;
     return new;
   end $$`,
  `create trigger enough_approvers before update of status on approvals for each row when (${IS_APPROVED})
   execute function enough_approvers()`,
];
