/**
 * Sentences that describe audit rows. Rows hold no bodies, and a stored sentence would add a fifth to the bytes of a read's row. A row of a held call
 * therefore uses the sentence stored with that call (except for the first row of a corrected call); for any other row the sentence is built from
 * method and path by the platform's current manifest when somebody reads it. None of this runs while a call is made.
 */
import type { Uses } from '../broker.ts';
import type { Compiled } from '../facts/compiled.ts';
import type { Sentence } from '../sentences/part.ts';
import { type Platform, sentenceOfPath } from '../sentences/sentences.ts';
import { findSentences } from '../store/approvals.ts';
import type { AuditRow } from '../store/audit.ts';
import { findPlatform } from '../store/governed-versions.ts';
import { sentenceOfHeld } from './held-sentence.ts';

type Row = Pick<AuditRow, 'id' | 'approval_id' | 'platform_id' | 'method' | 'path'>;

/** Returns the sentences by row id; rows that name no call have none. */
export async function sentencesOfRows(
  { broker, compiled }: Uses<'log' | 'store' | 'vault'> & { compiled: Compiled },
  organisationId: string,
  rows: readonly Row[],
): Promise<ReadonlyMap<string, Sentence>> {
  const { db } = broker.store;
  const approvals = [...new Set(rows.flatMap(({ approval_id }) => approval_id ?? []))];
  const held = new Map((await findSentences(db, organisationId, approvals)).map((one) => [one.id, one]));
  const platforms = new Map<string, Platform | undefined>();
  const platformOf = async (id: string): Promise<Platform | undefined> => {
    const found = await findPlatform(db, organisationId, id);
    if (!found) return undefined;
    try {
      const { rules, sentences } = await compiled.platform(organisationId, id, found.version);
      return { rules, sentences: sentences() };
    } catch (error) {
      // Calls of a platform with an unreadable manifest are refused, but its earlier rows stay readable.
      broker.log.warn({ err: error, platform: id }, 'the manifest of a platform cannot be read');
      return undefined;
    }
  };
  const said = new Map<string, Sentence>();
  for (const { id, approval_id, platform_id, method, path } of rows) {
    const call = approval_id === null ? undefined : held.get(approval_id);
    // The hold's own row shows what the agent requested, not what an owner corrected.
    const isAsked = call !== undefined && call.corrected_at !== null && id === call.audit_id;
    if (call && !isAsked) said.set(id, sentenceOfHeld(broker, call));
    else if (method !== null && path !== null && platform_id !== null) {
      if (!platforms.has(platform_id)) platforms.set(platform_id, await platformOf(platform_id));
      said.set(id, sentenceOfPath(platforms.get(platform_id), { method, path }));
    }
  }
  return said;
}
