import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/** The columns of an organisation that a governance file covers (0018), with retention and issuers, which were added later. */
const GOVERNED = [
  'name',
  'publish_identity_documents',
  'guardrails_version',
  'auto_suspend',
  'caller_issuers',
  'retention',
  'passkey_deciders',
];

/** Who may decide held calls by passkey without a session; and a new governance version on a change of any setting of a file. */
export async function passkeyDeciders(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  await db.schema
    .alterTable('organisations')
    .addColumn('passkey_deciders', 'text', (c) =>
      c.notNull().defaultTo('default').check(sql`passkey_deciders in ('default', 'approvers', 'agents_owner')`),
    )
    .execute();
  const when = GOVERNED.map((one) => `old.${one} is distinct from new.${one}`).join(' or ');
  const statements =
    dialect === 'sqlite'
      ? [
          'drop trigger governance_version_organisations_update',
          `create trigger governance_version_organisations_update after update on organisations when ${when}
           begin
             insert into governance_versions (organisation_id, version) values (new.id, hex(randomblob(16)))
               on conflict (organisation_id) do update set version = excluded.version;
           end`,
        ]
      : [
          'drop trigger governance_version_organisations_update on organisations',
          `create constraint trigger governance_version_organisations_update after update on organisations
           deferrable initially deferred for each row when (${when}) execute function renew_governance_version()`,
        ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
